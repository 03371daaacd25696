use serde::Deserialize;

use crate::error::WireError;

/// Decodes a postcard message that must fill `bytes`.
pub(crate) fn message<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, WireError> {
    known_message(bytes)?.ok_or(WireError::Malformed)
}

/// As [`message`], but returns `None` for a message with a variant that this
/// version of the crate does not know: the sender may be newer.
pub(crate) fn known_message<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
) -> Result<Option<T>, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(Some(message)),
        // What serde's generated code reports for a variant out of range.
        Err(postcard::Error::SerdeDeCustom) => Ok(None),
        Ok(_) | Err(_) => Err(WireError::Malformed),
    }
}
