//! Results of commands as JSON.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};
use vmcell::{Cause, Exit, Output, Truncation, VmEnd};

/// Returns a command's result. The cause may be known even if the guest did not
/// confirm the exit.
pub(crate) fn output_as_json(vm: &str, output: &Output, cause: Option<Cause>) -> Value {
    let dropped = |cut: Option<Truncation>| cut.map_or(0, |cut| cut.bytes);
    let mut result = json!({
        "sandbox_id": vm,
        "stdout": String::from_utf8_lossy(&output.stdout),
        "stderr": String::from_utf8_lossy(&output.stderr),
        "stdout_dropped_bytes": dropped(output.stdout_truncation),
        "stderr_dropped_bytes": dropped(output.stderr_truncation),
        "timed_out": cause == Some(Cause::Timeout),
        "warnings": output.warnings,
    });
    add_end(&mut result, output.exit.as_ref(), cause);
    result
}

/// Adds how a command ended. What is unknown or does not apply is null.
pub(crate) fn add_end(result: &mut Value, exit: Option<&Exit>, cause: Option<Cause>) {
    result["cause"] = json!(cause.map(|cause| cause.name()));
    result["exit_code"] = match cause {
        Some(Cause::Code(code)) => code.into(),
        _ => Value::Null,
    };
    result["signal"] = match cause {
        Some(Cause::Signal(signal)) => signal.number().into(),
        _ => Value::Null,
    };
    result["usage"] = exit.map_or(Value::Null, usage);
    result["oom_kills"] = json!(exit.map(|exit| exit.oom_kills));
    result["outputs_cut"] = json!(exit.map(|exit| exit.outputs_cut));
    result["tree_ended"] = json!(exit.and_then(|exit| exit.tree_ended));
}

/// Returns how a VM ended, and the exit status of its VMM. What is unknown or
/// does not apply is null.
pub(crate) fn vm_end_as_json(end: VmEnd) -> Value {
    json!({
        "kind": end.kind().name(),
        "reason": end.reason.name(),
        "exit_code": end.status.and_then(|status| status.code()),
        "signal": end.status.and_then(|status| status.signal()),
    })
}

fn usage(exit: &Exit) -> Value {
    json!({
        "wall_seconds": exit.wall_time.as_secs_f64(),
        "user_seconds": exit.user_time.as_secs_f64(),
        "system_seconds": exit.system_time.as_secs_f64(),
        "peak_memory_bytes": exit.peak_memory,
    })
}
