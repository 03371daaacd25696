//! A soak of some seconds, with each backend.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use vmcell::backend::{Backend as _, HostProcess};

/// Twenty seconds.
const HOURS: &str = "--hours=0.0055";

fn soak(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_vmcell-soak");
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{output:?}");
    assert!(text.contains("\n0 failures\n"), "{text}");
    output
}

/// Whether this machine can run the agent without a VM.
fn has_process_backend() -> bool {
    let health = HostProcess::new().health();
    if !health.is_available {
        eprintln!("skipped: {}", health.reason);
    }
    health.is_available
}

#[test]
fn nothing_is_left_after_random_use_of_vms() {
    soak(&[HOURS, "--backend=qemu"]);
}

#[test]
fn nothing_is_left_after_random_use_without_a_vm() {
    if has_process_backend() {
        soak(&[HOURS, "--backend=process"]);
    }
}

#[test]
fn a_round_is_repeated_by_its_seed() {
    let run = || {
        let output = soak(&["--backend=process", "--seed=7", "--round=5"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let round = text.lines().find(|line| line.contains(" round 5:"));
        round.unwrap().to_owned()
    };
    if has_process_backend() {
        assert_eq!(run(), run());
    }
}
