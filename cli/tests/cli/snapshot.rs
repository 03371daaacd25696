//! `vmcell snapshot` and `vmcell restore`.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    shared_vm::{SharedVm, unique},
    user::User,
    vmcell::{Vmcell, eventually},
};

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

const BOOT_ID: [&str; 2] = ["cat", "/proc/sys/kernel/random/boot_id"];

fn new_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved");
    (folder, path)
}

/// Returns the snapshot of a VM with a process in the background, and the VM.
fn saved(test: &str) -> (TempDir, String, SharedVm) {
    let (folder, path) = new_path();
    let path = path.to_str().unwrap().to_owned();
    let shared = SharedVm::start(test);
    shared.spawn("counter", ["sh", "-c", "echo begun; exec sleep 1000"]);
    shared.exec([], ["touch", "/root/note"]).assert_printed("");
    shared.cli("snapshot", [&*path]).finish().assert_printed("");
    (folder, path, shared)
}

#[test]
fn a_snapshot_of_a_vm_is_restored_in_the_background_and_used() {
    let (_folder, path, shared) = saved("saved");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    let id = unique("copy");
    let restored = Vmcell::new(["restore", "-d", "--name", &id, &path]).finish();
    restored.assert_printed(&format!("{id}\n"));

    let copy = |command| Vmcell::exec(&id, [], command).finish();
    copy(["ls", "/root/note"]).assert_printed("/root/note\n");
    let logs = Vmcell::new(["logs", &id, "counter"]).finish();
    logs.assert_printed("begun\n");
    let listed = Vmcell::new(["ps", "--json", &id]).finish().json();
    let mut processes = listed["processes"].as_array().unwrap().iter();
    let counter = processes.find(|process| process["tag"] == "counter");
    assert_eq!(counter.unwrap()["state"], "running", "{listed}");
    // Each has an identity of its own.
    let (one, other) = (shared.exec([], BOOT_ID), copy(BOOT_ID));
    assert_ne!(one.stdout(), other.stdout());

    Vmcell::new(["stop", &id]).finish().assert_printed("");
    shared.cli("stop", []).finish().assert_printed("");
    let listed = Vmcell::new(["ps"]).finish();
    assert!(!listed.stdout().contains(&id), "{listed:?}");
}

#[test]
fn a_restored_vm_in_the_foreground_prints_its_id_and_runs_until_it_is_ended() {
    let (_folder, path, _shared) = saved("saved-foreground");
    let mut running = Vmcell::new(["restore", &path]).start();
    let id = running.line().trim_end().to_owned();
    let answer = Vmcell::exec(&id, [], ["echo", "here"]).finish();
    answer.assert_printed("here\n");
    Vmcell::new(["stop", &id]).finish().assert_printed("");
    running.finish().assert_printed("");

    let mut running = Vmcell::new(["restore", "--json", &path]).start();
    let line: serde_json::Value = serde_json::from_str(&running.line()).unwrap();
    assert!(line["sandbox_id"].is_string(), "{line}");
    running.signal(Signal::INT);
    assert!(running.ends_within(TIMEOUT));
    let ended = running.finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (130, ""));

    let mut running = Vmcell::new(["restore", "--ttl-seconds", "1", &path]).start();
    assert_ne!(running.line(), "");
    running.finish().assert_failed(124, "ended after 1 s");
}

#[test]
fn a_command_runs_in_a_vm_of_a_snapshot() {
    let (folder, path, _shared) = saved("saved-run");
    let ended = Vmcell::run(["--from", &path], ["ls", "/root/note"]).finish();
    ended.assert_printed("/root/note\n");
    // By a name in this folder too.
    let ended = Vmcell::run(["--from", "saved"], ["true"]).current_dir(folder.path());
    ended.finish().assert_printed("");
    let mut user = User::run(["shell", "--from", &path]);
    user.sees("#");
    user.enters("ls /root/no*; exit 3");
    user.sees("/root/note");
    assert_eq!(user.finish().code, 3);
}

#[test]
fn what_a_snapshot_has_already_is_not_chosen_again() {
    let others: [&[&str]; 7] = [
        &["--warm"],
        &["--disk", "x"],
        &["--vcpu-count", "1"],
        &["--mem-mib", "1024"],
        &["--backend", "qemu"],
        &["--link", "serial"],
        &["--allow-host-compat"],
    ];
    for other in others.into_iter().chain([&["base"][..]]) {
        let options = ["--from", "./x"].into_iter().chain(other.iter().copied());
        let ended = Vmcell::run(options, ["true"]).finish();
        assert_eq!(ended.code(), 2, "{other:?}: {ended:?}");
        assert!(ended.stderr.contains("cannot be used with"), "{ended:?}");
    }
    let ended = Vmcell::run(["--warm", "--disk", "x"], ["true"]).finish();
    assert_eq!(ended.code(), 2, "{ended:?}");
}

#[test]
fn a_damaged_snapshot_says_so_and_starts_nothing() {
    let (_folder, path, _shared) = saved("saved-damaged");
    let state = format!("{path}/state");
    let mut bytes = fs::read(&state).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&state, &bytes).unwrap();
    let ended = Vmcell::run(["--from", &path], ["true"]).finish();
    ended.assert_failed(125, "is damaged: state was changed");
    let ended = Vmcell::new(["restore", "--detach", &path]).finish();
    ended.assert_failed(125, "is damaged");
    let ended = Vmcell::new(["restore", "--json", &path]).finish();
    assert_eq!(ended.code(), 125);
    assert_eq!(ended.json()["error"]["code"], "snapshot");
    let ended = Vmcell::new(["restore", "/nonexistent/saved"]).finish();
    ended.assert_failed(125, "No such file or directory");
    let ended = Vmcell::new(["restore", "no-such-template"]).finish();
    ended.assert_failed(125, "`vmcell template ls` lists them");
}

#[test]
fn a_snapshot_is_described_to_machines_and_does_not_replace_anything() {
    let (folder, path) = new_path();
    let shared = SharedVm::start("saved-json");
    // A relative path is one of this program, not of the VM's owner.
    let taken = shared.cli("snapshot", ["saved", "--compress", "--json"]);
    let taken = taken.current_dir(folder.path()).finish().json();
    let text = path.to_str().unwrap();
    assert_eq!(
        (&taken["sandbox_id"], &taken["path"]),
        (&json!(shared.id), &json!(text))
    );
    assert!(taken["bytes"].as_u64() > Some(0), "{taken}");
    assert!(taken["pause_ms"].as_f64() > Some(0.0), "{taken}");

    let again = shared.cli("snapshot", [text]).finish();
    again.assert_failed(125, "exists already: choose another path");
    let ended = Vmcell::new(["snapshot", "no-such-vm", "x"]).finish();
    ended.assert_failed(125, "`vmcell ps` lists running VMs");
    let ended = Vmcell::run(["--from", text], ["true"]).finish();
    ended.assert_printed("");
}

#[test]
fn a_vm_ends_with_its_snapshot_and_goes_on_under_its_name() {
    let (_folder, path) = new_path();
    let path = path.to_str().unwrap();
    let shared = SharedVm::start("saved-end");
    shared.spawn("bg", ["sleep", "1000"]);
    let taken = shared.cli("snapshot", ["--end", path]).finish();
    taken.assert_printed("");
    assert!(shared.running.ends_within(TIMEOUT));
    let restored = Vmcell::new(["restore", "--detach", "--json", "--id", &shared.id, path]);
    let restored = restored.finish();
    assert_eq!(restored.json(), json!({"sandbox_id": shared.id}));
    assert!(eventually(|| shared.process("bg").is_some()));
    shared.cli("stop", []).finish().assert_printed("");
}

#[test]
fn an_image_that_was_moved_is_named() {
    let (folder, path) = new_path();
    let path = path.to_str().unwrap();
    let [before, after] = ["before.ext4", "after.ext4"].map(|name| folder.path().join(name));
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    let mut copy = Command::new("cp");
    let copied = copy.arg("--sparse=always").args([&image, &before]).status();
    assert!(copied.unwrap().success());
    let shared = SharedVm::start_with("saved-moved", &[before.to_str().unwrap()]);
    shared.cli("snapshot", [path]).finish().assert_printed("");
    fs::rename(&before, &after).unwrap();
    let ended = Vmcell::new(["restore", path]).finish();
    ended.assert_failed(125, "`vmcell restore --image FILE`");
    let mut running = Vmcell::new(["restore", "--image", after.to_str().unwrap(), path]).start();
    let id = running.line().trim_end().to_owned();
    Vmcell::new(["stop", &id]).finish().assert_printed("");
    running.finish().assert_printed("");
}

#[test]
fn a_user_at_a_terminal_is_told_what_a_snapshot_has_cost() {
    let (_folder, path) = new_path();
    let shared = SharedVm::start("saved-terminal");
    let mut user = User::run(["snapshot", &shared.id, path.to_str().unwrap()]);
    user.sees("the VM stood still for ");
    assert_eq!(user.finish().code, 0);
}
