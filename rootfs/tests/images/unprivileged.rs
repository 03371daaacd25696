//! Building needs no privileges. Run as root, the test also builds as `nobody` and compares.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use vmcell_rootfs::{ImageBuilder, Kind, Node, Owner, Size, Tree};

use crate::inspect::{Inspect, assert_identical, install_program};

const DESTINATION: &str = "VMCELL_TEST_UNPRIVILEGED_DESTINATION";

fn build(destination: &Path) -> Inspect {
    let mut tree = Tree::new();
    tree.file("/bin/su", 0o4755, "x").unwrap();
    tree.insert(
        "/dev/null",
        Node::new(Kind::CharDevice { major: 1, minor: 3 }, 0o666),
    )
    .unwrap();
    tree.directory("/workspace", 0o700).unwrap();
    tree.set_owner(
        "/workspace",
        Owner {
            uid: 1000,
            gid: 1000,
        },
    )
    .unwrap();
    let builder = ImageBuilder::new().size(Size::Exact(16 << 20));
    Inspect(builder.build(&tree, destination).unwrap().path)
}

#[test]
fn nobody_makes_the_same_image_as_root() {
    if let Some(destination) = env::var_os(DESTINATION) {
        assert!(!rustix::process::getuid().is_root());
        build(Path::new(&destination));
        return;
    }
    let folder = TempDir::new().unwrap();
    let by_us = build(&folder.path().join("by-us"));
    by_us.assert_clean();
    assert_eq!(by_us.entry("/bin/su"), "104755 0 0");
    assert_eq!(by_us.entry("/dev/null"), "020666 0 0");
    assert_eq!(by_us.entry("/workspace"), "040700 1000 1000");
    if !rustix::process::getuid().is_root() {
        return;
    }

    // Other users may not have access to the folder of the test program.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("tests");
    install_program(&program, &fs::read(env::current_exe().unwrap()).unwrap());
    let by_nobody = folder.path().join("by-nobody");
    let ids = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--no-new-privs",
    ];
    let output = Command::new("setpriv")
        .args(ids)
        .arg(program)
        .args([
            "--exact",
            "unprivileged::nobody_makes_the_same_image_as_root",
        ])
        .env(DESTINATION, &by_nobody)
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_identical(&by_us.0, &by_nobody);
}
