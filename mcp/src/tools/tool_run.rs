//! The narrow tool of `vmcell::tool`: a policy decides, and each call has a receipt.

use std::sync::Arc;

use serde_json::{Value, json};
use vmcell::tool::{ToolAnswer, ToolPolicy, request_schema};

use crate::{call::Call, failure::Failure, hints::Hints, tool::Definition};

const NAME: &str = "tool_run";

const DESCRIPTION: &str = "\
Run a command on given files in a sandbox, within the policy of this server: images, time, output, \
network and secrets are limited, and each call leaves a receipt. failure says what went wrong, and \
whether to try again.";

/// Who calls, for the policy.
const CALLER: &str = "default";

pub(super) fn definition(policy: &ToolPolicy) -> Definition {
    let mut input = match request_schema(policy) {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    for noise in ["$schema", "title"] {
        input.remove(noise);
    }
    let tool = rmcp::model::Tool::new(NAME, DESCRIPTION, Arc::new(input))
        .with_raw_output_schema(Arc::new(output_schema()))
        .with_annotations(Hints::RUNS.annotations("Run a command in a sandbox"));
    Definition::new(tool, |call, input| Box::pin(run(call, input)))
}

fn output_schema() -> serde_json::Map<String, Value> {
    let schema = json!({
        "type": "object",
        "required": ["sandbox_id", "exit_code", "stdout", "stderr", "timed_out", "audit_id",
            "retention", "failure"],
        "properties": {
            "sandbox_id": { "type": ["string", "null"], "description": "What was kept" },
            "exit_code": { "type": ["integer", "null"] },
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
            "timed_out": { "type": "boolean" },
            "audit_id": { "type": ["string", "null"], "description": "That of the receipt" },
            "retention": { "type": ["string", "null"] },
            "failure": { "type": ["object", "null"] },
        },
    });
    match schema {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    }
}

async fn run(call: Call, input: Value) -> Result<Value, Failure> {
    let Some(tool) = &call.shared.tool else {
        return Err(Failure::internal(&"there is no policy"));
    };
    let request = serde_json::to_vec(&input).map_err(|error| Failure::internal(&error))?;
    let outcome = tool.run_json(CALLER, &request).await;
    let answer = ToolAnswer::new(&outcome).as_json().clone();
    match outcome {
        Ok(_) => Ok(answer),
        Err(_) => Err(Failure::answered(answer)),
    }
}
