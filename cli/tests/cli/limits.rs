//! Resource limits of commands.

use serde_json::{Value, json};

use crate::vmcell::Vmcell;

/// Doubles a variable until memory runs out.
const EXHAUST_MEMORY: [&str; 3] = ["sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"];

#[test]
fn a_command_that_needs_too_much_memory_is_ended_and_that_is_said() {
    let ended = Vmcell::run(["--memory-max", "16m"], EXHAUST_MEMORY).finish();
    ended.assert_failed(137, "ran out of memory");

    let ended = Vmcell::run(["--memory-max", "16m", "--json"], EXHAUST_MEMORY).finish();
    let result = ended.json();
    assert_eq!(result["cause"], json!("out-of-memory"), "{result}");
    assert_eq!(result["exit_code"], Value::Null);
    assert!(result["oom_kills"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(ended.code(), 137);
}

#[test]
fn a_command_that_prints_too_much_is_ended_and_that_is_said() {
    let ended = Vmcell::run(["--max-output-bytes", "1k"], ["yes"]).finish();
    assert_eq!(ended.code(), 153, "{ended:?}");
    assert_eq!(ended.stdout(), "y\n".repeat(512));
    assert!(
        ended
            .stderr
            .contains("more than 1024 bytes to standard output"),
        "{ended:?}"
    );

    let script = "echo fine; yes >&2";
    let options = ["--json", "--max-output-bytes", "5"];
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    let result = ended.json();
    assert_eq!(result["cause"], json!("output-limit"), "{result}");
    assert_eq!(result["stdout"], json!("fine\n"));
    assert_eq!(result["stderr"], json!("y\ny\ny"));
    assert_eq!(result["stdout_dropped_bytes"], json!(0));
    assert!(result["stderr_dropped_bytes"].as_u64().unwrap() > 0);
    assert_eq!((ended.code(), ended.stderr.as_str()), (153, ""));
}

#[test]
fn what_a_command_prints_up_to_the_limit_is_no_offence() {
    let options = ["--max-output-bytes", "6"];
    let ended = Vmcell::run(options, ["echo", "hello"]).finish();
    ended.assert_printed("hello\n");
}

#[test]
fn the_guests_kernel_knows_the_limits() {
    let script =
        "cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat memory.max pids.max cpu.max";
    let options = ["--memory-max", "32M", "--pids-max", "7", "--cpus", "0.5"];
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    ended.assert_printed("33554432\n7\n50000 100000\n");
}
