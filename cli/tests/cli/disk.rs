//! Disks that outlive their VMs.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::vmcell::{READY_AND_WAIT, Vmcell};

fn vmcell_disk(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmcell-disk"));
    command.args(arguments).output().unwrap()
}

fn path(disk: &Path) -> &str {
    disk.to_str().unwrap()
}

#[test]
fn what_a_command_writes_to_a_disk_is_there_for_the_next_one_and_for_a_look_inside() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("work.qcow2");
    let options = ["--disk", path(&disk)];
    let write = ["sh", "-c", "echo first >/root/notes; exit 3"];
    let ended = Vmcell::run(options, write).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (3, ""));

    let ended = Vmcell::run(options, ["cat", "/root/notes"]).finish();
    assert_eq!(ended.stdout(), "first\n");
    let look = vmcell_disk(&["cat", path(&disk), "/root/notes"]);
    assert_eq!(look.stdout, b"first\n", "{look:?}");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_disk_that_a_vm_has_is_in_use_and_survives_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("work.qcow2");
    let options = ["--disk", path(&disk)];
    let mut running = Vmcell::run(options, READY_AND_WAIT).start();
    assert_eq!(running.line(), "ready\n");

    let ended = Vmcell::run(options, ["true"]).finish();
    assert_eq!(ended.code(), 125);
    assert!(ended.stderr.contains("is in use"), "{ended:?}");
    let look = vmcell_disk(&["ls", path(&disk)]);
    assert!(!look.status.success());
    let text = String::from_utf8_lossy(&look.stderr).into_owned();
    assert!(text.contains("--torn"), "{text}");
    let look = vmcell_disk(&["ls", "--torn", path(&disk)]);
    assert!(look.status.success(), "{look:?}");

    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.finish().code(), 143);
    let info = vmcell_disk(&["info", "--json", path(&disk)]);
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    // The VM was shut down cleanly.
    assert_eq!(info["file_system"]["clean"], true, "{info}");
}

#[test]
fn a_disk_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("text");
    std::fs::write(&disk, "not a disk").unwrap();
    let ended = Vmcell::run(["--disk", path(&disk)], ["true"]).finish();
    assert_eq!(ended.code(), 125);
    assert!(!ended.stderr.is_empty());
    assert_eq!(std::fs::read(&disk).unwrap(), b"not a disk");
    let nowhere = folder.path().join("missing/disk.qcow2");
    let ended = Vmcell::run(["--disk", path(&nowhere)], ["true"]).finish();
    assert_eq!(ended.code(), 125);
    assert!(ended.stderr.contains("missing"), "{ended:?}");
}
