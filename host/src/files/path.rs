use std::{
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use vmcell_wire::limits::MAX_PATH;

use crate::{error::Error, printable_name};

/// The root as the guest wants it.
pub(super) fn root(root: &Path) -> Result<&[u8], Error> {
    if !root.is_absolute() || root.components().any(|part| part == Component::ParentDir) {
        let root = shown(root);
        return Err(Error::Invalid(format!(
            "the root {root} is not an absolute path without `..`"
        )));
    }
    checked(root)
}

/// A path below the root as the guest wants it: relative to the root.
pub(super) fn inside<'a>(root: &Path, path: &'a Path) -> Result<&'a [u8], Error> {
    if path.is_relative() {
        return checked(path);
    }
    match path.strip_prefix(root) {
        Ok(below) => checked(below),
        Err(_) => Err(Error::Invalid(format!(
            "{} is not below {}: paths are relative to the root, or begin with it",
            shown(path),
            shown(root)
        ))),
    }
}

fn checked(path: &Path) -> Result<&[u8], Error> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&0) || bytes.len() >= MAX_PATH {
        return Err(Error::Invalid(format!(
            "a path is shorter than {MAX_PATH} bytes and has no zero byte in it"
        )));
    }
    Ok(bytes)
}

/// A path as it can be shown: on one line, and without control bytes.
pub(crate) fn shown(path: &Path) -> String {
    printable_name(path.as_os_str().as_bytes()).into_owned()
}
