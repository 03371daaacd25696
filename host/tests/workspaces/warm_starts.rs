//! Workspaces that start from a template.

use std::{fs, ops::ControlFlow, process::Command};

use vmcell::{
    Template,
    disk::{Disk, image::flatten},
    workspace::BASELINE,
};

use crate::{Store, new, shell};

/// Checks the file system of a disk.
pub(crate) fn check(disk: &Disk) {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("raw");
    let go_on = &mut |_| ControlFlow::Continue(());
    flatten(disk.image(), &raw, disk.size(), go_on).unwrap();
    let checked = Command::new("e2fsck").args(["-f", "-n"]).arg(&raw).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

#[tokio::test]
async fn a_workspace_from_a_template_is_like_any_other() {
    let store = Store::kept();
    let seed = tempfile::tempdir().unwrap();
    fs::write(seed.path().join("file"), "seeded\n").unwrap();
    let new = || new().warm(true).seed(seed.path()).user("1000");
    let first = store.workspaces.create(new()).await.unwrap();
    // The first one may have made the template, and the links of the image do not make it
    // another one.
    let templates = Template::list().await.unwrap().len();
    let second = store.workspaces.create(new()).await.unwrap();
    assert_eq!(Template::list().await.unwrap().len(), templates);
    let line = "hostname; cat file; id -u; cat /proc/sys/kernel/random/boot_id";
    let (one, two) = (shell(&first, line).await, shell(&second, line).await);
    assert!(one.starts_with(&format!("{}\nseeded\n1000\n", first.id())));
    assert!(two.starts_with(&format!("{}\nseeded\n1000\n", second.id())));
    assert_ne!(one, two);
    let random = "head -c 16 /dev/urandom | md5sum";
    assert_ne!(shell(&first, random).await, shell(&second, random).await);

    // Its disk is whole.
    shell(&first, "echo 1 > file; sync").await;
    first.snapshot("one").await.unwrap();
    shell(&first, "echo 2 > file").await;
    first.pause().await.unwrap();
    assert_eq!(shell(&first, "cat file").await, "2\n");
    first.stop().await.unwrap();
    let disk = first.disk().await.unwrap();
    assert_eq!(disk.read("/workspace/file").unwrap(), b"2\n");
    check(&disk);
    drop(disk);
    first.start().await.unwrap();
    assert_eq!(shell(&first, "cat file").await, "2\n");
    first.reset(BASELINE).await.unwrap();
    assert_eq!(shell(&first, "cat file").await, "seeded\n");
    let fork = first.fork("one", |new| new).await.unwrap();
    fork.start().await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "1\n");

    for workspace in [first, second, fork] {
        workspace.delete().await.unwrap();
    }
    assert!(store.files().is_empty(), "{:?}", store.files());
}

#[tokio::test]
async fn without_a_seed_the_disk_of_the_template_is_the_baseline() {
    let store = Store::kept();
    let root = store.workspaces.create(new().warm(true)).await.unwrap();
    let user = new().warm(true).user("1234");
    let user = store.workspaces.create(user).await.unwrap();
    // As in the image.
    assert_eq!(shell(&root, "stat -c %u:%a .").await, "1000:755\n");
    // It is a template of its own, because the folder is another user's.
    assert_eq!(shell(&user, "stat -c %u:%a .").await, "1234:755\n");
    for workspace in [root, user] {
        assert!(workspace.diff(BASELINE).await.unwrap().files().is_empty());
        shell(&workspace, "echo 1 > file; sync").await;
        let diff = workspace.diff(BASELINE).await.unwrap();
        assert_eq!(diff.files().len(), 1, "{diff:?}");
        workspace.stop().await.unwrap();
        let diff = workspace.diff(BASELINE).await.unwrap();
        assert_eq!(diff.files().len(), 1, "{diff:?}");
        workspace.reset(BASELINE).await.unwrap();
        let disk = workspace.disk().await.unwrap();
        assert!(disk.exists("/workspace").unwrap());
        assert!(!disk.exists("/workspace/file").unwrap());
        check(&disk);
        drop(disk);
        workspace.start().await.unwrap();
        assert_eq!(shell(&workspace, "ls").await, "");
        workspace.delete().await.unwrap();
    }
    assert!(store.files().is_empty(), "{:?}", store.files());
}
