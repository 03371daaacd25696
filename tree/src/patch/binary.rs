//! Parses the line that `diff` prints for binary files.

use std::path::PathBuf;

use super::{
    error::PatchErrorKind,
    name::{BadName, MAX_PATH},
    parse::Strip,
    plain::{HeaderName, choose},
};

/// Returns the names in `Binary files old/x and new/x differ`.
pub(super) fn names(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(b"Binary files ")?
        .strip_suffix(b" differ")
}

/// Returns the path of the file that both names stand for. They may contain the
/// text between them.
pub(super) fn path(names: &[u8], strip: Strip) -> Result<PathBuf, PatchErrorKind> {
    const BETWEEN: &[u8] = b" and ";
    if names.len() > 2 * MAX_PATH {
        return Err(BadName::TooLong.into());
    }
    let mut result = Err(PatchErrorKind::NoName);
    for at in memchr::memmem::find_iter(names, BETWEEN) {
        let (old, new) = (&names[..at], &names[at + BETWEEN.len()..]);
        result = choose(&HeaderName::new(old), &HeaderName::new(new), strip);
        if result.is_ok() {
            break;
        }
    }
    result
}
