//! What machines are told about a command.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};
use vmcell::{Cause, Exit, Output, Truncation, VmEnd};

/// A command that was run. The cause may be known although the guest did not
/// confirm the end.
pub(crate) fn of_output(vm: &str, output: &Output, cause: Option<Cause>) -> Value {
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

/// Adds how a command ended; null is what is not known or not so.
pub(crate) fn add_end(result: &mut Value, exit: Option<&Exit>, cause: Option<Cause>) {
    result["cause"] = json!(cause.map(|cause| cause.name()));
    result["exit_code"] = match cause {
        Some(Cause::Code(code)) => code.into(),
        _ => Value::Null,
    };
    result["signal"] = match cause {
        Some(Cause::Signal(signal)) => signal.into(),
        _ => Value::Null,
    };
    result["usage"] = exit.map_or(Value::Null, usage);
    result["oom_kills"] = json!(exit.map(|exit| exit.oom_kills));
    result["outputs_cut"] = json!(exit.map(|exit| exit.outputs_cut));
    result["tree_ended"] = json!(exit.and_then(|exit| exit.tree_ended));
}

/// How a VM ended, and the exit status of its VMM; null is what is not known or
/// not so.
pub(crate) fn of_end(end: VmEnd) -> Value {
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
