//! Quotas of workspaces.

use std::fs;

use vmcell::{
    Command, Quotas,
    workspace::{NewWorkspace, Workspace, Workspaces},
};

use super::{COMMAND_TIMEOUT, MIB, base};

const QUOTA: u64 = 32 * MIB;

/// Returns whether a shell line succeeds in a workspace.
async fn succeeds(workspace: &Workspace, line: &str) -> bool {
    workspace
        .exec(Command::shell(line).timeout(COMMAND_TIMEOUT))
        .await
        .unwrap()
        .success()
}

/// Returns the length of the longest layer of its disk.
fn longest_layer(root: &std::path::Path, workspace: &Workspace) -> u64 {
    let folder = root.join("workspaces").join(workspace.id());
    let folder = folder.join("layers");
    let layers = fs::read_dir(folder).unwrap().flatten();
    layers.map(|it| it.metadata().unwrap().len()).max().unwrap()
}

#[tokio::test]
async fn a_workspace_keeps_its_quotas_over_stop_start_pause_and_fork() {
    let root = tempfile::tempdir().unwrap();
    let store = Workspaces::at(root.path()).unwrap();
    let quotas = Quotas::new().layer_bytes(QUOTA).disk_rate(64 * MIB);
    let new = NewWorkspace::new(base()).memory_mib(128).quotas(quotas);
    let workspace = store.create(new).await.unwrap();
    assert_eq!(workspace.info().await.unwrap().quotas, quotas);
    assert!(succeeds(&workspace, "echo kept >kept; sync").await);
    // The VM goes on in another layer, and its disk keeps its rate.
    workspace.snapshot("before").await.unwrap();
    assert!(succeeds(&workspace, "echo more >more; sync").await);
    workspace.stop().await.unwrap();
    workspace.start().await.unwrap();
    workspace.pause().await.unwrap();
    workspace.start().await.unwrap();
    let usage = workspace.vm().await.unwrap().health().await.quotas.unwrap();
    assert_eq!(usage.quotas, quotas);
    let fill = "dd if=/dev/urandom of=large bs=1M count=40 conv=fsync";
    assert!(!succeeds(&workspace, fill).await);
    assert!(succeeds(&workspace, "cat kept more").await);
    assert!(longest_layer(root.path(), &workspace) <= QUOTA);
    workspace.vm().await.unwrap().kill().await.unwrap();

    // Its files can be had with a larger quota, in a fork.
    workspace.snapshot("full").await.unwrap();
    let larger = |new: NewWorkspace| new.quotas(Quotas::new());
    let large = workspace.fork("full", larger).await.unwrap();
    large.start().await.unwrap();
    assert!(succeeds(&large, "cat kept more").await);

    let fork = workspace.fork("before", |new| new).await.unwrap();
    assert_eq!(fork.info().await.unwrap().quotas, quotas);
    assert!(succeeds(&large, fill).await);
    for workspace in [workspace, fork, large] {
        workspace.delete().await.unwrap();
    }
}
