//! Contents of files, as models get and send them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Serialize;

/// Bytes of a file, as text if they are UTF-8.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// If it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self {
                text: Some(text),
                base64: None,
            },
            Err(error) => Self {
                text: None,
                base64: Some(STANDARD.encode(error.as_bytes())),
            },
        }
    }
}
