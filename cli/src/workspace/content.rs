//! The content of a file, as text and as JSON.

use std::path::PathBuf;

use serde_json::json;
use vmcell::files::ReadOptions;
use vmcell_cli::show::{SafeStdout, name};

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
            remove_partial_character(&mut self.bytes);
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

/// Removes the last character of a text if some of its bytes are missing.
fn remove_partial_character(text: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(text)
        && error.error_len().is_none()
    {
        text.truncate(error.valid_up_to());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_character_that_lacks_bytes_is_removed() {
        for (text, expected) in [
            (&b"ab"[..], &b"ab"[..]),
            (b"a\xc3", b"a"),
            (b"a\xe2\x82", b"a"),
            (b"a\xff", b"a\xff"),
            (b"\xffa\xc3", b"\xffa\xc3"),
        ] {
            let mut text = text.to_vec();
            remove_partial_character(&mut text);
            assert_eq!(text, expected);
        }
    }
}
