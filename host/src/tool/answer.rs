use serde_json::{Value, json};

use super::{ToolFailure, ToolResult};

/// The outcome of a call as one JSON object, for models and other programs.
///
/// It always has `sandbox_id`, `exit_code`, `stdout`, `stderr`, `timed_out`, `audit_id`,
/// `retention` and `failure`. The failure is null, or has `kind`, `message`, `retry` and
/// `advice`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer(Value);

impl ToolAnswer {
    /// Returns the outcome of a call as JSON.
    pub fn new(outcome: &Result<ToolResult, ToolFailure>) -> Self {
        let (result, failure) = match outcome {
            Ok(result) => (Some(result), None),
            Err(failure) => (failure.result(), Some(failure)),
        };
        let mut object = match result {
            // Its fields have no keys other than text, so this does not fail.
            Some(result) => serde_json::to_value(result).unwrap_or_default(),
            None => json!({
                "sandbox_id": null,
                "exit_code": null,
                "stdout": "",
                "stderr": "",
                "timed_out": false,
                "audit_id": failure.map(ToolFailure::audit_id),
                "retention": null,
            }),
        };
        object["failure"] = failure.map_or(Value::Null, |failure| {
            json!({
                "kind": failure.kind(),
                "message": failure.to_string(),
                "retry": failure.retry(),
                "advice": failure.retry().to_string(),
            })
        });
        Self(object)
    }

    /// Returns the object.
    pub fn as_json(&self) -> &Value {
        &self.0
    }
}
