use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::guest_path;
use crate::{
    error::Error,
    files::{Files, ReadOptions},
    vm::Vm,
};

/// A file that a request wanted back.
///
/// As JSON it has `path`, `bytes`, and `content` or, if it is not UTF-8, `content_base64`;
/// or `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutputFile {
    /// Its path in the guest.
    pub path: String,
    /// Its content, with secrets masked, or why there is none.
    pub content: Result<Vec<u8>, String>,
}

impl Serialize for ToolOutputFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ToolOutputFile", 3)?;
        object.serialize_field("path", &self.path)?;
        match &self.content {
            Ok(content) => {
                object.serialize_field("bytes", &content.len())?;
                match str::from_utf8(content) {
                    Ok(text) => object.serialize_field("content", text)?,
                    Err(_) => {
                        object.serialize_field("content_base64", &STANDARD.encode(content))?;
                    }
                }
            }
            Err(error) => object.serialize_field("error", error)?,
        }
        object.end()
    }
}

/// Reads files of a guest, of so many bytes together. A link that leads out of the roots is
/// not followed.
pub(super) async fn read(
    vm: &Vm,
    paths: &[String],
    roots: &[String],
    budget: usize,
) -> Result<Vec<ToolOutputFile>, Error> {
    let mut left = budget as u64;
    let mut files = Vec::new();
    for path in paths {
        let content = match read_one(vm, path, roots, left).await {
            Ok(content) => {
                left = left.saturating_sub(content.len() as u64);
                Ok(content)
            }
            Err(Error::File(failure)) => Err(failure.to_string()),
            Err(error) => return Err(error),
        };
        files.push(ToolOutputFile {
            path: path.clone(),
            content,
        });
    }
    Ok(files)
}

async fn read_one(vm: &Vm, path: &str, roots: &[String], limit: u64) -> Result<Vec<u8>, Error> {
    let (files, path) = below_root(vm.files(), path, roots);
    files.read_with(path, ReadOptions::new().limit(limit)).await
}

/// Returns the files below the root of a path, which was [checked](guest_path::check), and the
/// rest of the path.
fn below_root<'a>(files: Files, path: &'a str, roots: &[String]) -> (Files, &'a str) {
    debug_assert!(guest_path::check(path, roots).is_ok());
    let rest = |root: &String| path.strip_prefix(root.as_str())?.strip_prefix('/');
    let found = roots.iter().find_map(|root| Some((root, rest(root)?)));
    match found {
        Some((root, rest)) => (files.at(root), rest),
        None => (files, path),
    }
}
