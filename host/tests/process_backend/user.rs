//! Runs all tests once more as an unprivileged user.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::Command,
};

use rustix::process::geteuid;

use crate::{IMAGE_VARIABLE, base, builder, shell, start};

/// A user id without any files or rights.
const NOBODY: u32 = 65_533;

#[tokio::test]
async fn root_has_users_and_others_are_alone() {
    let Some(vm) = start().await else { return };
    let script = "touch /tmp/x && chown 7:8 /tmp/x && stat -c %u:%g /tmp/x";
    let changed = vm.exec(["sh", "-c", script]).await.unwrap();
    let as_user = vm.exec_with(["id", "-u"], |command| command.user("12:12"));
    if geteuid().is_root() {
        assert_eq!(changed.stdout_text(), "7:8\n", "{changed:?}");
        assert_eq!(as_user.await.unwrap().stdout_text(), "12\n");
    } else {
        assert!(!changed.success());
        assert_eq!(as_user.await.unwrap_err().code(), "exec");
        assert_eq!(shell(&vm, "stat -c %u:%g /bin").await, "0:0\n");
    }
}

#[test]
fn an_ordinary_user_can_do_all_of_this() {
    if !geteuid().is_root() || builder().is_none() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = |path: &std::path::Path, mode| {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    own(folder.path(), 0o700);
    let (program, image) = (folder.path().join("tests"), folder.path().join("image"));
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    own(&program, 0o700);
    fs::copy(base(), &image).unwrap();
    own(&image, 0o600);
    let output = Command::new(&program)
        .args(["--skip", "an_ordinary_user", "--test-threads", "4"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.path())
        .env(IMAGE_VARIABLE, &image)
        .current_dir(folder.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("nobody_becomes_more_than_they_are ... ok"),
        "{said}"
    );
    // The base of the run folders remains, but is empty.
    let base = std::env::temp_dir().join(format!("vmcell-{NOBODY}"));
    assert!(fs::read_dir(&base).map_or(0, Iterator::count) == 0);
    let _ = fs::remove_dir(base);
}
