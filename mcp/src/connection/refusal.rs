use rmcp::{ErrorData, model::RequestId};
use serde::Deserialize;
use serde_json::Value;

use super::MAX_LINE;

/// Why a line is no message that is answered.
pub(crate) struct Refusal {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

/// What tells which message it is.
#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
    method: Option<Value>,
}

impl Refusal {
    /// Of a line that cannot be understood. Notifications get no answer, whatever they are.
    pub(super) fn of(line: &[u8], error: &serde_json::Error) -> Option<Self> {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            let message = format!("the line is no JSON: {error}");
            return Some(Self {
                id: None,
                error: ErrorData::parse_error(message, None),
            });
        };
        let envelope = serde_json::from_value(value).unwrap_or(Envelope {
            id: None,
            method: None,
        });
        let message = match &envelope {
            Envelope {
                id: None,
                method: Some(_),
            } => return None,
            Envelope {
                method: Some(method),
                ..
            } => format!("the message is none of the protocol: see the parameters of {method}"),
            _ => "the message is none of the protocol: it has no method".to_owned(),
        };
        Some(Self {
            id: envelope.id.and_then(|id| serde_json::from_value(id).ok()),
            error: ErrorData::invalid_request(message, None),
        })
    }

    /// Its answer has no id: the client would take it for that of the other request.
    pub(crate) fn used_id(id: &RequestId) -> Self {
        let message = format!("the id {id} is that of a request which is not answered yet");
        Self {
            id: None,
            error: ErrorData::invalid_request(message, None),
        }
    }

    pub(crate) fn too_long(id: Option<RequestId>) -> Self {
        let message = format!(
            "the message is longer than {MAX_LINE} bytes: send large contents in several calls"
        );
        Self {
            id,
            error: ErrorData::invalid_request(message, None),
        }
    }
}
