//! Names of files in patches: normalizing, quoting and unquoting.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Linux's limits for a path and for a name in it.
pub(super) const MAX_PATH: usize = 4096;
const MAX_NAME: usize = 255;

/// A name of a file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadName {
    /// There is no name.
    #[error("the name of the file is missing")]
    Empty,
    /// The name starts with a slash.
    #[error("the name {0} is absolute: only names below the root are allowed")]
    Absolute(String),
    /// The name contains `..`.
    #[error("the name {0} contains `..`: only names below the root are allowed")]
    ParentDir(String),
    /// The name contains a NUL byte.
    #[error("the name {0} contains a NUL byte")]
    NulByte(String),
    /// The name is too long for Linux.
    #[error("the name is longer than {MAX_PATH} bytes, or a part of it than {MAX_NAME}")]
    TooLong,
    /// The name has fewer directories than have to be stripped.
    #[error("the name {0} has fewer directories than have to be stripped")]
    TooFewDirectories(String),
    /// The quoted name has no closing quote, or an invalid escape.
    #[error("the quoted name has no closing quote, or an invalid escape")]
    BadQuotes,
}

/// Normalizes a relative path: removes `.` and double slashes, and rejects
/// paths that could leave their base.
pub(crate) fn relative_path(name: &[u8]) -> Result<PathBuf, BadName> {
    stripped(name, 0)
}

/// Like [`relative_path`], but removes the first `levels` directories.
pub(super) fn stripped(name: &[u8], levels: usize) -> Result<PathBuf, BadName> {
    if name.is_empty() {
        return Err(BadName::Empty);
    }
    if name.len() > MAX_PATH {
        return Err(BadName::TooLong);
    }
    let error = |kind: fn(String) -> BadName| Err(kind(quote(name)));
    if name.starts_with(b"/") {
        return error(BadName::Absolute);
    }
    if name.contains(&0) {
        return error(BadName::NulByte);
    }
    let mut path = PathBuf::new();
    let parts = name.split(|byte| *byte == b'/');
    for part in parts.filter(|part| !part.is_empty()).skip(levels) {
        match part {
            b"." => {}
            b".." => return error(BadName::ParentDir),
            _ if part.len() > MAX_NAME => return Err(BadName::TooLong),
            _ => path.push(OsStr::from_bytes(part)),
        }
    }
    if path.as_os_str().is_empty() {
        return error(if levels == 0 {
            |_| BadName::Empty
        } else {
            BadName::TooFewDirectories
        });
    }
    Ok(path)
}

/// An unquoted name, and the text after the closing quote.
pub(super) type Unquoted<'a> = (Vec<u8>, &'a [u8]);

/// Unquotes the name at the start of a text, or returns `None` if it is not
/// quoted.
pub(super) fn unquote(text: &[u8]) -> Result<Option<Unquoted<'_>>, BadName> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        return Ok(None);
    };
    let mut name = Vec::new();
    loop {
        let (byte, behind) = match rest {
            [b'"', behind @ ..] => return Ok(Some((name, behind))),
            [b'\\', escape @ ..] => unescape(escape).ok_or(BadName::BadQuotes)?,
            [byte, behind @ ..] => (*byte, behind),
            [] => return Err(BadName::BadQuotes),
        };
        if name.len() > MAX_PATH {
            return Err(BadName::TooLong);
        }
        name.push(byte);
        rest = behind;
    }
}

/// Decodes the escape after a backslash, as in C.
fn unescape(escape: &[u8]) -> Option<(u8, &[u8])> {
    let (first, rest) = escape.split_first()?;
    let byte = match first {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'"' | b'\\' => *first,
        b'0'..=b'3' => {
            let (digits, rest) = escape.split_at_checked(3)?;
            let byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?;
            return Some((byte, rest));
        }
        _ => return None,
    };
    Some((byte, rest))
}

/// Quotes a name as git does: only if it contains something other than plain
/// ASCII. The result has only printable characters.
pub(crate) fn quote(name: &[u8]) -> String {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if name.iter().all(plain) {
        return name.iter().copied().map(char::from).collect();
    }
    let mut quoted = String::from("\"");
    for byte in name {
        match byte {
            7 => quoted.push_str("\\a"),
            8 => quoted.push_str("\\b"),
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            11 => quoted.push_str("\\v"),
            12 => quoted.push_str("\\f"),
            b'\r' => quoted.push_str("\\r"),
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            _ if plain(byte) => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a tab after an unquoted name with spaces. Without it, readers could
/// take the rest of the name for a timestamp.
pub(crate) fn name_terminator(name: &str) -> &'static str {
    let is_quoted = name.starts_with('"');
    if name.contains(' ') && !is_quoted {
        "\t"
    } else {
        ""
    }
}

pub(super) fn quote_path(path: &Path) -> String {
    quote(path.as_os_str().as_bytes())
}
