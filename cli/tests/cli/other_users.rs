//! Other users of this machine have no access to a VM.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::{shared_vm::SharedVm, vmcell::Vmcell};

/// Returns a copy of the program that everybody can run.
fn public_copy(folder: &tempfile::TempDir) -> PathBuf {
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("vmcell");
    fs::copy(env!("CARGO_BIN_EXE_vmcell"), &copy).unwrap();
    copy
}

#[test]
fn a_stranger_neither_sees_nor_enters_nor_ends_a_vm() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = public_copy(&folder);
    let shared = SharedVm::start("private");
    let ended = Vmcell::new(["ps"]).by_other_user(&program).finish();
    ended.assert_printed("ID  OWNER  STATE  UPTIME  VCPUS  MEMORY  IMAGE\n");
    for task in [
        shared.cli("ps", []),
        shared.cli("exec", ["--", "true"]),
        shared.cli("exec", ["--detach", "--", "true"]),
        shared.cli("logs", ["main"]),
        shared.cli("kill", ["main"]),
        shared.cli("kill", []),
    ] {
        let ended = task.by_other_user(&program).finish();
        ended.assert_failed(125, "no running VM has the id");
    }
    shared
        .exec([], ["echo", "untouched"])
        .assert_printed("untouched\n");
}
