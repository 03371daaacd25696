//! Workspaces that are created stopped.

use std::{fs, path::Path, process};

use vmcell::{
    Vm,
    workspace::{BASELINE, NewWorkspace, Workspace, WorkspaceState},
};

use crate::{Store, new, shell};

/// An image without `/workspace`.
fn bare_image(folder: &Path) -> NewWorkspace {
    let base = vmcell_rootfs::recipe::base().cached().unwrap().path;
    let image = folder.join("bare.ext4");
    fs::copy(base, &image).unwrap();
    let mut permissions = fs::metadata(&image).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs::set_permissions(&image, permissions).unwrap();
    let removed = process::Command::new("debugfs")
        .args(["-w", "-R", "rmdir /workspace"])
        .arg(&image)
        .output()
        .unwrap();
    assert!(removed.status.success(), "{removed:?}");
    NewWorkspace::new(image).memory_mib(128)
}

/// Returns how many files are different, as the diff with a snapshot says.
async fn changes(workspace: &Workspace, snapshot: &str) -> usize {
    workspace.diff(snapshot).await.unwrap().files().len()
}

/// Returns whether its record says that `/workspace` is still to be made.
fn is_blank(store: &Store, workspace: &Workspace) -> bool {
    let folder = store.root.path().join("workspaces").join(workspace.id());
    let text = fs::read_to_string(folder.join("workspace.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    record["is_blank"] == true
}

#[tokio::test]
async fn the_first_start_makes_the_workspace_and_later_ones_leave_it_alone() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    let new = bare_image(folder.path()).name("later").user("1000:1000");
    let workspace = store.workspaces.create_stopped(new).await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert_eq!((info.stop_reason, info.command_count), (None, 0));
    assert!(Vm::attach(workspace.id()).await.is_err());
    assert!(is_blank(&store, &workspace));
    let disk = workspace.disk().await.unwrap();
    assert!(disk.stat("/workspace").is_err());
    assert!(disk.stat("/etc/passwd").is_ok());
    drop(disk);

    workspace.start().await.unwrap();
    let line = "pwd; id -u; stat -c %u:%g .; touch file";
    assert_eq!(
        shell(&workspace, line).await,
        "/workspace\n1000\n1000:1000\n"
    );
    assert!(!is_blank(&store, &workspace));
    let command = vmcell::Command::shell("chown 0:0 /workspace").user("root");
    assert!(workspace.exec(command).await.unwrap().success());
    workspace.stop().await.unwrap();
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "stat -c %u .; ls").await, "0\nfile\n");
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty(), "{:?}", store.files());
}

#[tokio::test]
async fn the_size_of_the_disk_does_not_matter() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    let image = folder.path().join("large.ext4");
    fs::File::create(&image).unwrap().set_len(1 << 40).unwrap();
    let new = NewWorkspace::new(image).id("large");
    let workspace = store.workspaces.create_stopped(new).await.unwrap();
    let layers = store.root.path().join("workspaces/large/layers");
    let sizes = fs::read_dir(layers).unwrap();
    let sizes = sizes.map(|layer| layer.unwrap().metadata().unwrap().len());
    let size: u64 = sizes.sum();
    assert!(size < 2 << 20, "{size}");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn one_that_has_not_started_has_snapshots_forks_and_diffs() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    let new = bare_image(folder.path());
    let workspace = store.workspaces.create_stopped(new).await.unwrap();
    assert_eq!(changes(&workspace, BASELINE).await, 0);
    workspace.snapshot("early").await.unwrap();
    assert_eq!(changes(&workspace, "early").await, 0);
    workspace.reset("early").await.unwrap();
    let fork = workspace.fork("early", |new| new).await.unwrap();
    assert!(is_blank(&store, &workspace) && is_blank(&store, &fork));
    assert_eq!(changes(&fork, BASELINE).await, 0);

    // Each has its own, and files are new since then.
    for started in [&workspace, &fork] {
        started.start().await.unwrap();
        shell(started, "echo 1 > file").await;
        assert_eq!(changes(started, BASELINE).await, 1);
    }
    fork.stop().await.unwrap();
    assert_eq!(changes(&fork, BASELINE).await, 1);
    fork.delete().await.unwrap();
    workspace.snapshot("late").await.unwrap();
    assert_eq!(changes(&workspace, "late").await, 0);
    let fork = workspace.fork("late", |new| new).await.unwrap();
    assert!(!is_blank(&store, &fork));

    // It is made again on a disk that does not have it, running or stopped.
    workspace.reset(BASELINE).await.unwrap();
    assert_eq!(shell(&workspace, "pwd; ls").await, "/workspace\n");
    workspace.stop().await.unwrap();
    workspace.reset("early").await.unwrap();
    assert!(is_blank(&store, &workspace));
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "pwd; ls").await, "/workspace\n");
    workspace.reset("late").await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "1\n");
    workspace.delete().await.unwrap();
    fork.start().await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "1\n");
    fork.delete().await.unwrap();
}

#[tokio::test]
async fn a_first_start_that_was_cut_off_is_finished_by_the_next_one() {
    let store = Store::new();
    let workspace = store.workspaces.create_stopped(new()).await.unwrap();
    let folder = store.root.path().join("workspaces").join(workspace.id());
    let before = fs::read(folder.join("workspace.json")).unwrap();
    workspace.start().await.unwrap();
    shell(&workspace, "echo kept > file; sync").await;
    workspace.stop().await.unwrap();
    // The program was killed before it could write so.
    fs::write(folder.join("workspace.json"), before).unwrap();
    assert!(is_blank(&store, &workspace));
    workspace.start().await.unwrap();
    assert!(!is_blank(&store, &workspace));
    assert_eq!(shell(&workspace, "cat file").await, "kept\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_created_stopped_says_why_and_leaves_nothing_behind() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    for (new, expected) in [
        (new().seed(folder.path()), "create it started"),
        (new().memory_mib(1), "memory"),
        (new().vcpus(0), "processors"),
        (NewWorkspace::new("/does/not/exist"), "/does/not/exist"),
    ] {
        let error = store.workspaces.create_stopped(new).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(store.files().is_empty(), "{expected}: {:?}", store.files());
    }

    // Whether a user exists, only the guest knows.
    let new = new().user("nobody-knows-me");
    let workspace = store.workspaces.create_stopped(new).await.unwrap();
    let error = workspace.start().await.unwrap_err();
    assert!(error.to_string().contains("no such user"), "{error}");
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert!(info.stop_reason.unwrap().contains("no such user"));
    assert!(is_blank(&store, &workspace));
    assert!(Vm::attach(workspace.id()).await.is_err());
    workspace.delete().await.unwrap();
}
