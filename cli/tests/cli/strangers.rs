//! Other users of this machine have no access to a VM.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::{keeper::Keeper, vmcell::Vmcell};

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
    let keeper = Keeper::start("private");
    let ended = Vmcell::new(["ps"]).by_stranger(&program).finish();
    ended.assert_printed("ID  OWNER  STATE  UPTIME  VCPUS  MEMORY  IMAGE\n");
    for task in [
        keeper.visit("ps", []),
        keeper.visit("exec", ["--", "true"]),
        keeper.visit("exec", ["--detach", "--", "true"]),
        keeper.visit("logs", ["main"]),
        keeper.visit("kill", ["main"]),
        keeper.visit("kill", []),
    ] {
        let ended = task.by_stranger(&program).finish();
        ended.assert_failed(125, "no running VM has the id");
    }
    keeper
        .exec([], ["echo", "untouched"])
        .assert_printed("untouched\n");
}
