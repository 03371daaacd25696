//! What must be true after something was killed.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::{WaitOptions, wait};
use serde_json::Value;
use vmcell::{
    End, Error,
    workspace::{Workspace, Workspaces},
};

/// Checks that all workspaces are whole and can be used, and that nothing is left of others.
/// Returns whether `main` is there, which has what was synced. Those without a name are
/// deleted.
pub(crate) async fn check_all(workspaces: &Workspaces, folder: &Path, synced: Option<u64>) -> bool {
    settle(workspaces, folder).await;
    let mut is_there = false;
    for info in workspaces.list().await.unwrap() {
        let workspace = workspaces.get(&info.id).await.unwrap();
        let number = use_workspace(&workspace).await;
        check_files(&folder.join("workspaces").join(&info.id));
        if info.name.as_deref() == Some("main") {
            is_there = true;
            assert!(number >= synced, "{number:?} {synced:?} {info:?}");
        } else {
            workspace.delete().await.unwrap();
        }
    }
    assert!(is_there || synced.is_none(), "it is gone, with {synced:?}");
    is_there
}

/// Waits until keepers have finished what a program has begun that was killed.
async fn settle(workspaces: &Workspaces, folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        workspaces.list().await.unwrap();
        let entries = fs::read_dir(folder.join("workspaces")).unwrap().flatten();
        let mut folders = entries.filter(|entry| entry.path().is_dir());
        if folders.all(|entry| entry.path().join("workspace.json").exists()) {
            return;
        }
        assert!(Instant::now() < deadline, "a workspace is half there");
        tokio::task::yield_now().await;
    }
}

/// Uses a workspace, and returns the number on its disk.
async fn use_workspace(workspace: &Workspace) -> Option<u64> {
    let output = loop {
        workspace.start().await.unwrap();
        let command = vmcell::Command::shell("cat count || true");
        match workspace.exec(command).await {
            // Its VMM was killed, and its keeper has not noticed before.
            Err(Error::Gone(End::Died)) => {}
            output => break output.unwrap(),
        }
    };
    let number = output.stdout_text().trim().parse().ok();
    workspace.snapshot("check").await.unwrap();
    workspace.delete_snapshot("check").await.unwrap();
    workspace.stop().await.unwrap();
    number
}

/// Checks that a stopped workspace has no files that it does not need.
fn check_files(folder: &Path) {
    const KNOWN: [&str; 9] = [
        "activity",
        "changes.lock",
        "history",
        "image.ext4",
        "keeper.log",
        "layers",
        "name",
        "owner.lock",
        "workspace.json",
    ];
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let mut files = names(folder);
    files.retain(|name| !KNOWN.contains(&name.as_str()));
    assert!(files.is_empty(), "{files:?}");
    let record = fs::read_to_string(folder.join("workspace.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let mut layers = names(&folder.join("layers"));
    layers.sort();
    let known = record["layers"]["below"].as_object().unwrap().keys();
    let mut known: Vec<_> = known.map(|layer| format!("{layer}.qcow2")).collect();
    known.sort();
    assert_eq!(layers, known);
}

/// Waits until all processes have ended.
pub(crate) fn no_process_is_left() {
    let deadline = Instant::now() + Duration::from_secs(30);
    while wait(WaitOptions::NOHANG).is_ok() {
        assert!(Instant::now() < deadline, "a process is left");
        std::thread::yield_now();
    }
}
