//! Paths of a disk: bytes from its root on, without a slash in front.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use vmcell_wire::limits::MAX_PATH;

use super::DiskError;
use vmcell_tree::printable_name;

/// A path as it can be shown: on one line, and without control bytes.
pub(super) fn shown(path: &[u8]) -> String {
    /// A longer one fills a screen and helps nobody.
    const MOST: usize = 512;
    if path.is_empty() {
        return "/".to_owned();
    }
    let start = path.get(..MOST).unwrap_or(path);
    let text = printable_name(start);
    if start.len() < path.len() {
        return format!("{text}...");
    }
    text.into_owned()
}

/// The bytes of a path that a caller named, without slashes around them.
pub(super) fn named(path: &Path) -> Result<&[u8], DiskError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&0) || bytes.len() >= MAX_PATH {
        return Err(DiskError::Invalid(format!(
            "a path is shorter than {MAX_PATH} bytes and has no zero byte in it"
        )));
    }
    Ok(trimmed(bytes))
}

fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_prefix(b"/") {
        bytes = rest;
    }
    while let Some(rest) = bytes.strip_suffix(b"/") {
        bytes = rest;
    }
    bytes
}

/// Appends a name to a path.
pub(super) fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

pub(super) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
