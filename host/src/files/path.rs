use std::{
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use vmcell_wire::limits::MAX_PATH;

use crate::{error::Error, printable_name};

/// Checks the root, and returns its bytes.
pub(super) fn root_bytes(root: &Path) -> Result<&[u8], Error> {
    if !root.is_absolute() || root.components().any(|part| part == Component::ParentDir) {
        let root = display_path(root);
        return Err(Error::Invalid(format!(
            "the root {root} is not an absolute path without `..`"
        )));
    }
    checked(root)
}

/// Returns a path relative to the root. An absolute path must be below the
/// root.
pub(super) fn relative_bytes<'a>(root: &Path, path: &'a Path) -> Result<&'a [u8], Error> {
    if path.is_relative() {
        return checked(path);
    }
    match path.strip_prefix(root) {
        Ok(below) => checked(below),
        Err(_) => Err(Error::Invalid(format!(
            "{} is not below {}: paths are relative to the root, or begin with it",
            display_path(path),
            display_path(root)
        ))),
    }
}

fn checked(path: &Path) -> Result<&[u8], Error> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&0) || bytes.len() >= MAX_PATH {
        return Err(Error::Invalid(format!(
            "a path must be shorter than {MAX_PATH} bytes and must not contain a NUL byte"
        )));
    }
    Ok(bytes)
}

/// Formats a path for messages: on one line, and without control characters.
pub(crate) fn display_path(path: &Path) -> String {
    printable_name(path.as_os_str().as_bytes()).into_owned()
}
