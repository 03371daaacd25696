use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_value, json, to_value};

use crate::{
    Cause, End, Exit, KeptOutput, LeftProcess, Output, ProcessId, ProcessInfo, Signal, Truncation,
    VmEnd,
};

fn exit(cause: Cause) -> Exit {
    Exit {
        cause,
        user_time: Duration::from_micros(1_500),
        system_time: Duration::from_micros(1),
        wall_time: Duration::from_secs(3),
        peak_memory: 4096,
        stdout_bytes: 7,
        stderr_bytes: 0,
        outputs_cut: true,
        oom_kills: 1,
        tree_ended: Some(false),
    }
}

/// Returns a value as JSON, and checks that it is read again as it was.
fn stored<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T) -> Value {
    let json = to_value(&value).unwrap();
    assert_eq!(from_value::<T>(json.clone()).unwrap(), value);
    json
}

#[test]
fn an_exit_is_read_again() {
    let json = stored(exit(Cause::Signal(Signal::KILL)));
    assert_eq!(json["cause"], "signal");
    assert_eq!(json["signal"], 9);
    assert_eq!(json["exit_code"], Value::Null);
    assert_eq!(json["usage"]["user_seconds"], 0.0015);
    for cause in [
        Cause::Code(3),
        Cause::Timeout,
        Cause::OutputLimit,
        Cause::OutOfMemory,
        Cause::Killed,
    ] {
        assert_eq!(stored(exit(cause))["cause"], cause.name());
    }
    for bad in [
        json!({}),
        json!({ "cause": "code" }),
        json!({ "cause": "?" }),
    ] {
        assert!(from_value::<Exit>(bad).is_err());
    }
}

#[test]
fn output_that_is_not_text_keeps_its_bytes() {
    let output = Output {
        exit: Some(exit(Cause::Timeout)),
        stdout: b"a\xffb".to_vec(),
        stderr: "schön".into(),
        stdout_truncation: Some(Truncation { at: 1, bytes: 5 }),
        stderr_truncation: None,
        warnings: vec!["no VM".to_owned()],
        network_denials: vec!["a.test:443".to_owned()],
    };
    let json = stored(output.clone());
    assert_eq!(json["network_denials"][0], "a.test:443");
    assert_eq!(json["stdout"], "a\u{fffd}b");
    assert_eq!(json["stdout_base64"], "Yf9i");
    assert_eq!(json["stderr"], "schön");
    assert_eq!(json.get("stderr_base64"), None);
    assert_eq!(json["stdout_dropped_bytes"], 5);
    assert_eq!(json["timed_out"], true);
    let running = stored(Output {
        exit: None,
        ..output
    });
    assert_eq!(running["cause"], Value::Null);
}

#[test]
fn a_process_is_read_again_with_its_exit_and_without() {
    let kept = KeptOutput { start: 1, end: 9 };
    let process = ProcessInfo {
        id: ProcessId(7),
        pid: 12,
        tag: "web".to_owned(),
        command: vec!["httpd".to_owned()],
        uid: 0,
        background: true,
        age: Duration::from_millis(250),
        stdout: kept,
        stderr: kept,
        exit: Some(exit(Cause::Code(0))),
        left: vec![LeftProcess {
            pid: 13,
            name: "sh".to_owned(),
        }],
        left_more: false,
    };
    let json = stored(process.clone());
    assert_eq!(
        (&json["state"], &json["exit_code"]),
        (&json!("ended"), &json!(0))
    );
    assert_eq!(json["stdout"], json!({ "bytes": 9, "kept_from": 1 }));
    let json = stored(ProcessInfo {
        exit: None,
        ..process
    });
    assert_eq!(
        (&json["state"], &json["cause"]),
        (&json!("running"), &Value::Null)
    );
}

#[test]
fn the_end_of_a_vm_is_read_again() {
    for (status, code, signal) in [(0, json!(0), json!(null)), (9, json!(null), json!(9))] {
        let status = Some(ExitStatus::from_raw(status));
        let json = stored(VmEnd {
            reason: End::ProtocolViolation,
            status,
        });
        let expected = json!({
            "kind": "cut", "reason": "untrustworthy", "exit_code": code, "signal": signal,
        });
        assert_eq!(json, expected);
    }
    for reason in [End::Stopped, End::StopTimedOut, End::StoppedUnproven] {
        let json = stored(VmEnd {
            reason,
            status: None,
        });
        assert_eq!(json["reason"], reason.name());
    }
}

#[test]
fn a_signal_is_its_number() {
    assert_eq!(stored(Signal::TERM), json!(15));
    assert!(from_value::<Signal>(json!(65)).is_err());
}
