//! The result of a command as JSON.

use serde_json::{Value, json};
use vmcell::{Cause, Output};
use vmcell_cli::show;

/// Returns a command's result, without the VM. The cause may be known even if the guest did not
/// confirm the exit.
pub(crate) fn output_as_json(output: &Output, cause: Option<Cause>) -> Value {
    let mut result = show::json::value(output);
    result["cause"] = json!(cause.map(|cause| cause.name()));
    result["timed_out"] = (cause == Some(Cause::Timeout)).into();
    result
}
