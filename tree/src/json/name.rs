use std::{borrow::Cow, ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use serde::{de::Error, ser::SerializeMap};

use super::hex::{from_hex, hex};

/// A name for JSON: its text, and its bytes in hexadecimal if it is not UTF-8.
pub(super) type JsonName<'a> = (Cow<'a, str>, Option<String>);

/// Returns a name for JSON.
pub(super) fn json_name(bytes: &[u8]) -> JsonName<'_> {
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, Cow::Owned(_));
    (text, is_lossy.then(|| hex(bytes)))
}

/// Writes a name to a JSON object, as one key or as two.
///
/// # Errors
/// Those of the map.
pub fn write_name<M: SerializeMap>(map: &mut M, key: &str, bytes: &[u8]) -> Result<(), M::Error> {
    let (text, hex) = json_name(bytes);
    map.serialize_entry(key, &text)?;
    match hex {
        Some(hex) => map.serialize_entry(&format!("{key}_bytes"), &hex),
        None => Ok(()),
    }
}

/// Returns the path that a name of JSON stands for.
pub(super) fn path<E: Error>((text, hex): JsonName<'_>) -> Result<PathBuf, E> {
    let bytes = match hex {
        Some(hex) => from_hex(&hex).ok_or_else(|| E::custom("a name is not hexadecimal"))?,
        None => text.into_owned().into_bytes(),
    };
    Ok(OsString::from_vec(bytes).into())
}
