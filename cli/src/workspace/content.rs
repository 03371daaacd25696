//! The content of a file, as text and as JSON.

use std::path::PathBuf;

use serde_json::json;
use vmcell::files::ReadOptions;
use vmcell_cli::show::{SafeStdout, name};
use vmcell_tree::whole_characters;

use crate::failure::{print_json, report};

/// The beginning of a file.
pub(super) struct Content {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// The size of the whole file.
    pub(super) size: u64,
    pub(super) max_bytes: u64,
}

impl Content {
    /// How much is printed, if the user does not say.
    pub(super) const DEFAULT_MAX_BYTES: u64 = 65_536;

    /// Reads this much of a file at most.
    pub(super) fn range(max_bytes: u64) -> ReadOptions {
        ReadOptions::new().range(0, max_bytes).limit(max_bytes)
    }

    pub(super) fn print(mut self, workspace: &str, json: bool) -> anyhow::Result<u8> {
        let is_truncated = self.size > self.bytes.len() as u64;
        if is_truncated {
            self.bytes.truncate(whole_characters(&self.bytes).len());
        }
        if json {
            let mut object = json!({
                "workspace_id": workspace,
                "size_bytes": self.size,
                "max_bytes": self.max_bytes,
                "truncated": is_truncated,
            });
            name::insert(&mut object, "path", &self.path);
            name::insert_bytes(&mut object, "content", &self.bytes);
            print_json(&object);
            return Ok(0);
        }
        let mut out = SafeStdout::new();
        let written = out.file_bytes(&self.bytes);
        let code = out.finish(written)?;
        if is_truncated {
            report(&format!(
                "printed {} of {} bytes: `--max-bytes` prints more",
                self.bytes.len(),
                self.size
            ));
        }
        Ok(code)
    }
}
