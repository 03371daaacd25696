//! Paths on a disk: bytes relative to the root, without a leading slash.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use vmcell_wire::limits::MAX_PATH;

use super::DiskError;
use vmcell_tree::printable_name;

/// Returns a path in a printable form: on one line, without control characters.
pub(super) fn shown(path: &[u8]) -> String {
    /// Longer paths are truncated.
    const MAX_SHOWN: usize = 512;
    if path.is_empty() {
        return "/".to_owned();
    }
    let start = path.get(..MAX_SHOWN).unwrap_or(path);
    let text = printable_name(start);
    if start.len() < path.len() {
        return format!("{text}...");
    }
    text.into_owned()
}

/// Checks a path from the caller and returns its bytes without leading and
/// trailing slashes.
pub(super) fn checked_path(path: &Path) -> Result<&[u8], DiskError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&0) || bytes.len() >= MAX_PATH {
        return Err(DiskError::Invalid(format!(
            "a path must be shorter than {MAX_PATH} bytes and contain no zero byte"
        )));
    }
    Ok(trim_slashes(bytes))
}

fn trim_slashes(mut bytes: &[u8]) -> &[u8] {
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
