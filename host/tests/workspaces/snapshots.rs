//! Snapshots, resets and forks.

use std::fs;

use vmcell::workspace::{BASELINE, Workspace, WorkspaceState};

use crate::{Store, new, shell};

async fn names(workspace: &Workspace) -> Vec<String> {
    let snapshots = workspace.snapshots().await.unwrap();
    snapshots
        .into_iter()
        .map(|snapshot| snapshot.name)
        .collect()
}

#[tokio::test]
async fn a_reset_goes_back_to_a_snapshot_or_to_the_baseline() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo 1 > file; echo system > /etc/file").await;
    // Running, and what was not synced is in it.
    let snapshot = workspace.snapshot("one").await.unwrap();
    assert!(snapshot.bytes > 0 && !snapshot.is_baseline());
    shell(&workspace, "echo 2 > file").await;
    workspace.stop().await.unwrap();
    workspace.snapshot("two").await.unwrap();
    workspace.start().await.unwrap();
    shell(&workspace, "echo 3 > file").await;
    assert_eq!(names(&workspace).await, [BASELINE, "one", "two"]);

    for (snapshot, expected) in [
        ("one", "1\nsystem\n"),
        ("two", "2\nsystem\n"),
        ("one", "1\nsystem\n"),
    ] {
        let info = workspace.reset(snapshot).await.unwrap();
        assert_eq!(info.state, WorkspaceState::Running);
        assert_eq!(shell(&workspace, "cat file /etc/file").await, expected);
    }
    let info = workspace.reset(BASELINE).await.unwrap();
    assert_eq!(info.reset_count, 4);
    assert!(info.last_reset.unwrap() > info.created);
    assert_eq!(shell(&workspace, "ls").await, "");
    // A stopped one stays stopped.
    workspace.stop().await.unwrap();
    let info = workspace.reset("two").await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    let disk = workspace.disk().await.unwrap();
    assert_eq!(disk.read("/workspace/file").unwrap(), b"2\n");
    drop(disk);

    for (name, code) in [("three", "no-such-snapshot"), ("", "no-such-snapshot")] {
        assert_eq!(workspace.reset(name).await.unwrap_err().code(), code);
        assert_eq!(
            workspace.delete_snapshot(name).await.unwrap_err().code(),
            code
        );
    }
    for name in ["one", BASELINE] {
        let error = workspace.snapshot(name).await.unwrap_err();
        assert_eq!(error.code(), "snapshot-name-taken");
    }
    let error = workspace.delete_snapshot(BASELINE).await.unwrap_err();
    assert!(error.to_string().contains("baseline"), "{error}");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn layers_that_nothing_needs_are_removed() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    let layers = store.root.path().join("workspaces").join(workspace.id());
    let layers = || fs::read_dir(layers.join("layers")).unwrap().count();
    assert_eq!(layers(), 2);
    for name in ["a", "b", "c"] {
        shell(&workspace, &format!("echo {name} > file")).await;
        workspace.snapshot(name).await.unwrap();
    }
    assert_eq!(layers(), 5);
    workspace.reset("a").await.unwrap();
    // The layer that was written to is gone.
    assert_eq!(layers(), 5);
    workspace.delete_snapshot("c").await.unwrap();
    assert_eq!(layers(), 4);
    // Needed by the one that is written to.
    workspace.delete_snapshot("a").await.unwrap();
    assert_eq!(layers(), 4);
    assert_eq!(shell(&workspace, "cat file").await, "a\n");
    workspace.reset("b").await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "b\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_fork_goes_on_from_a_snapshot_and_does_not_need_its_source() {
    let store = Store::new();
    let source = store
        .workspaces
        .create(new().label("team", "a"))
        .await
        .unwrap();
    shell(&source, "echo shared > file").await;
    source.snapshot("built").await.unwrap();
    shell(&source, "echo later > file").await;
    let fork = source.fork("built", |new| new.name("fork")).await.unwrap();
    let info = fork.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert_eq!(info.labels["team"], "a");
    assert_eq!(names(&fork).await, [BASELINE]);
    fork.start().await.unwrap();
    assert_eq!(shell(&fork, "cat file; echo own > file").await, "shared\n");
    assert_eq!(shell(&source, "cat file").await, "later\n");
    source.delete().await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "own\n");
    fork.reset(BASELINE).await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "shared\n");
    // A fork of a fork.
    let second = fork.fork(BASELINE, |new| new).await.unwrap();
    fork.delete().await.unwrap();
    second.start().await.unwrap();
    assert_eq!(shell(&second, "cat file").await, "shared\n");
    second.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn a_diff_shows_what_has_changed_running_or_stopped() {
    let store = Store::new();
    let seed = tempfile::tempdir().unwrap();
    fs::write(seed.path().join("changed"), "one\ntwo\n").unwrap();
    fs::write(seed.path().join("removed"), "old\n").unwrap();
    fs::write(seed.path().join("kept"), "same\n").unwrap();
    let workspace = store
        .workspaces
        .create(new().seed(seed.path()))
        .await
        .unwrap();
    let diff = workspace.diff(BASELINE).await.unwrap();
    assert!(diff.is_empty(), "{diff:?}");
    let line = "sed -i s/two/2/ changed; rm removed; mkdir new; echo new > new/file; echo > /etc/x";
    shell(&workspace, line).await;
    let patch = async |snapshot: &str| {
        let mut patch = Vec::new();
        let diff = workspace.diff(snapshot).await.unwrap();
        diff.write_patch(&mut patch).unwrap();
        String::from_utf8(patch).unwrap()
    };
    let running = patch(BASELINE).await;
    for line in ["-two\n", "+2\n", "-old\n", "+new\n", "b/new/file"] {
        assert!(running.contains(line), "{line}: {running}");
    }
    assert!(
        !running.contains("kept") && !running.contains("etc"),
        "{running}"
    );
    workspace.snapshot("later").await.unwrap();
    shell(&workspace, "echo more >> kept").await;
    assert!(patch("later").await.contains("+more\n"));
    workspace.pause().await.unwrap();
    assert!(patch("later").await.contains("+more\n"));
    workspace.stop().await.unwrap();
    let stopped = patch(BASELINE).await;
    assert!(stopped.contains("+more\n"), "{stopped}");
    assert!(
        stopped.contains("-old\n") && stopped.contains("b/new/file"),
        "{stopped}"
    );
    let error = workspace.diff("other").await.unwrap_err();
    assert_eq!(error.code(), "no-such-snapshot");
    workspace.delete().await.unwrap();
}
