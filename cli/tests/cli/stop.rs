//! `vmcell stop`, and other ways to end a VM whose disk is kept.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    shared_vm::SharedVm,
    user::{User, has_sighup},
    vmcell::{Running, Vmcell},
};

/// Timeout for a clean shutdown on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn new_disk() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.qcow2");
    (folder, path)
}

/// Starts a VM with data that is not written to its disk yet.
fn vm_with_disk(disk: &Path, test: &str) -> SharedVm {
    let shared = SharedVm::start_with(test, &["--disk", disk.to_str().unwrap()]);
    let write = ["sh", "-c", "echo notes >/root/notes"];
    shared.exec([], write).assert_printed("");
    shared
}

fn vmcell_disk(task: &[&str], disk: &Path) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmcell-disk"));
    let output = command.args(task).arg(disk).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn is_clean(disk: &Path) -> bool {
    let info: Value = serde_json::from_slice(&vmcell_disk(&["info", "--json"], disk)).unwrap();
    info["file_system"]["clean"].as_bool().unwrap()
}

#[track_caller]
fn assert_in_order(disk: &Path) {
    assert!(is_clean(disk));
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmcell-disk"));
    let output = command.arg("cat").arg(disk).arg("/root/notes").output();
    assert_eq!(output.unwrap().stdout, b"notes\n");
}

/// Asserts that a command ended by SIGTERM, which a stop sends to all
/// processes.
#[track_caller]
fn assert_asked_to_end(running: Running) {
    let ended = running.finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (143, ""));
}

#[test]
fn stop_ends_a_vm_in_order_and_says_so() {
    let (_folder, disk) = new_disk();
    let shared = vm_with_disk(&disk, "stopped");
    let listed = Vmcell::new(["ps", "--json"]).finish().json();
    let mut vms = listed["vms"].as_array().unwrap().iter();
    let listed = vms.find(|vm| vm["id"] == shared.id.as_str()).unwrap();
    assert_eq!(listed["keeps_disk"], json!(true));

    let stopped = shared.cli("stop", ["--json"]).finish();
    assert_eq!((stopped.code(), stopped.stderr.as_str()), (0, ""));
    let end = &stopped.json()["vm_end"];
    let expected = json!({"kind": "clean", "reason": "stopped", "exit_code": 0, "signal": null});
    assert_eq!(*end, expected);
    assert_asked_to_end(shared.running);
    assert_in_order(&disk);
    let ended = Vmcell::new(["stop", &shared.id]).finish();
    ended.assert_failed(125, "`vmcell ps` lists running VMs");

    // VMs without a persistent disk can be stopped too.
    let shared = SharedVm::start("stopped-scratch");
    shared.cli("stop", []).finish().assert_printed("");
}

#[test]
fn killing_a_vm_whose_disk_is_kept_is_no_power_cut_unless_it_is_forced() {
    let (_folder, disk) = new_disk();
    let shared = vm_with_disk(&disk, "killed-in-order");
    shared.cli("kill", []).finish().assert_printed("");
    assert_asked_to_end(shared.running);
    assert_in_order(&disk);

    let shared = vm_with_disk(&disk, "killed-by-force");
    shared.cli("kill", ["--force"]).finish().assert_printed("");
    let ended = shared.running.finish();
    ended.assert_failed(125, "the VM is gone: it was killed");
    assert!(!is_clean(&disk));
}

#[test]
fn every_signal_ends_a_vm_whose_disk_is_kept_in_order() {
    let signals = [
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
        (Signal::TERM, 143),
    ];
    for (signal, code) in signals {
        if signal == Signal::HUP && !has_sighup() {
            println!("skipped: SIGHUP is ignored here");
            continue;
        }
        let (_folder, disk) = new_disk();
        let shared = vm_with_disk(&disk, &format!("signal-{code}"));
        shared.running.signal(signal);
        let ended = shared.running.finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (code, ""));
        assert_in_order(&disk);
    }
}

/// As when a window is closed: later output goes nowhere.
#[test]
fn a_terminal_that_is_closed_ends_a_vm_whose_disk_is_kept_in_order() {
    if !has_sighup() {
        println!("skipped: SIGHUP is ignored here");
        return;
    }
    let (_folder, disk) = new_disk();
    let script = "echo notes >/root/notes; while echo ready; do :; done";
    let path = disk.to_str().unwrap();
    let mut user = User::run(["run", "--disk", path, "--", "sh", "-c", script]);
    user.sees("ready");
    let program = user.program();
    drop(user);
    assert!(program.ends_within(TIMEOUT));
    assert_in_order(&disk);
}

#[test]
fn a_run_under_nohup_hears_no_sighup() {
    let vmcell = env!("CARGO_BIN_EXE_vmcell");
    let line = format!(
        "trap '' HUP; exec {vmcell} run -- {}",
        "sh -c 'echo ready; read a; echo $a'"
    );
    let mut running = Vmcell::shell(&line).start();
    assert_eq!(running.line(), "ready\n");
    running.signal(Signal::HUP);
    let writing = running.write_all_and_close(b"still here\n".to_vec());
    writing.join().unwrap();
    running.finish().assert_printed("still here\n");
}

#[test]
fn a_run_for_machines_tells_them_how_the_vm_ended() {
    let (_folder, disk) = new_disk();
    let options = ["--json", "--disk", disk.to_str().unwrap()];
    let ended = Vmcell::run(options, ["true"]).finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
    let end = &ended.json()["vm_end"];
    assert_eq!(
        (&end["kind"], &end["exit_code"]),
        (&json!("clean"), &json!(0))
    );
    // Without a persistent disk, how the VM ended does not matter.
    let ended = Vmcell::run(["--json"], ["true"]).finish();
    assert_eq!(ended.json().get("vm_end"), None);
}
