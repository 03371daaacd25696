//! Names of files as they stand in patches.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The longest path that Linux takes, and the longest name in it.
const MAX_PATH: usize = 4096;
const MAX_NAME: usize = 255;

/// Why a name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadName {
    /// There is none.
    #[error("the name of the file is missing")]
    Empty,
    /// The name begins with a slash.
    #[error("the name {0} is absolute: only names beneath the root are allowed")]
    Absolute(String),
    /// The name goes through `..`.
    #[error("the name {0} goes through `..`: only names beneath the root are allowed")]
    Parent(String),
    /// There is a zero byte in the name.
    #[error("the name {0} has a zero byte")]
    Zero(String),
    /// The name is longer than the system takes.
    #[error("the name is longer than {MAX_PATH} bytes, or a part of it than {MAX_NAME}")]
    TooLong,
    /// The name has fewer directories than are to be taken off.
    #[error("the name {0} has fewer directories than are to be taken off")]
    TooShort(String),
    /// The quotes around the name do not end, or what is in them makes no
    /// sense.
    #[error("the quotes around the name make no sense")]
    BadQuotes,
}

/// The path with no `.` and no doubled slash in it, if it stays beneath where
/// it begins.
pub(crate) fn relative(name: &[u8]) -> Result<PathBuf, BadName> {
    stripped(name, 0)
}

/// The same, with the first directories taken off.
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
        return error(BadName::Zero);
    }
    let mut path = PathBuf::new();
    let parts = name.split(|byte| *byte == b'/');
    for part in parts.filter(|part| !part.is_empty()).skip(levels) {
        match part {
            b"." => {}
            b".." => return error(BadName::Parent),
            _ if part.len() > MAX_NAME => return Err(BadName::TooLong),
            _ => path.push(OsStr::from_bytes(part)),
        }
    }
    if path.as_os_str().is_empty() {
        return error(if levels == 0 {
            |_| BadName::Empty
        } else {
            BadName::TooShort
        });
    }
    Ok(path)
}

/// A name that was in quotes, and what follows these.
pub(super) type Unquoted<'a> = (Vec<u8>, &'a [u8]);

/// The name in quotes, if that is what the text begins with.
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

/// What stands for a byte behind a backslash, as in C.
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

/// The name as git writes it: in quotes if something in it is no plain ASCII.
/// There are only printable characters in it.
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

pub(super) fn quote_path(path: &Path) -> String {
    quote(path.as_os_str().as_bytes())
}
