//! Workspaces that a process of their own runs.

use std::fs;

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use vmcell::{
    Command, Vm,
    workspace::{BASELINE, Keeper, Workspace, WorkspaceState, Workspaces},
};

use crate::{Store, attached::failure, new, shell};

/// What the keeper of these tests runs: this program, with the name of this test.
#[tokio::test]
async fn keep_a_workspace() {
    let is_keeper = std::env::args().any(|word| word == KEEP);
    if is_keeper {
        Keeper::keep(std::future::pending()).await.unwrap();
    }
}

pub(crate) const KEEP: &str = "keepers::keep_a_workspace";

/// Returns the keeper of these tests.
pub(crate) fn keeper() -> Keeper {
    let keeper = Keeper::new(std::env::current_exe().unwrap());
    keeper.arg("--exact").arg(KEEP).arg("--nocapture")
}

impl Store {
    /// Workspaces with a keeper.
    pub(crate) fn kept() -> Self {
        let store = Self::new();
        Self {
            workspaces: store.workspaces.keeper(keeper()),
            ..store
        }
    }
}

/// Returns the process that runs a workspace.
pub(crate) async fn keeper_of(workspace: &Workspace) -> Pid {
    let vms = Vm::list().await.unwrap();
    let vm = vms.into_iter().find(|vm| vm.id == workspace.id());
    let pid = vm.unwrap().owner_pid.unwrap();
    assert_ne!(pid, std::process::id());
    Pid::from_raw(pid.try_into().unwrap()).unwrap()
}

/// Waits until a process that is not a child of this one has ended.
pub(crate) async fn ended(pid: Pid) {
    // Fails if it has ended.
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
        let waiting = move || {
            let mut ends = [PollFd::new(&process, PollFlags::IN)];
            poll(&mut ends, None).unwrap();
        };
        tokio::task::spawn_blocking(waiting).await.unwrap();
    }
}

#[tokio::test]
async fn a_keeper_runs_the_workspace_and_ends_with_it() {
    let store = Store::kept();
    let seed = tempfile::tempdir().unwrap();
    fs::write(seed.path().join("file"), "seeded\n").unwrap();
    let workspace = store
        .workspaces
        .create(new().seed(seed.path()))
        .await
        .unwrap();
    let keeper = keeper_of(&workspace).await;
    assert_eq!(
        shell(&workspace, "cat file; echo 2 > file").await,
        "seeded\n"
    );
    workspace.snapshot("two").await.unwrap();
    let info = workspace.reset(BASELINE).await.unwrap();
    assert_eq!(info.state, WorkspaceState::Running);
    ended(keeper).await;
    assert_eq!(shell(&workspace, "cat file").await, "seeded\n");
    let keeper = keeper_of(&workspace).await;
    workspace.stop().await.unwrap();
    ended(keeper).await;
    let info = workspace.info().await.unwrap();
    assert_eq!(info.stop_reason.as_deref(), Some("stopped"));
    workspace.reset("two").await.unwrap();
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "2\n");
    let keeper = keeper_of(&workspace).await;
    workspace.delete().await.unwrap();
    ended(keeper).await;
    assert!(store.files().is_empty(), "{:?}", store.files());
}

#[tokio::test]
async fn what_was_synced_is_there_after_the_keeper_was_killed() {
    let store = Store::kept();
    let workspace = store.workspaces.create(new()).await.unwrap();
    let keeper = keeper_of(&workspace).await;
    shell(&workspace, "echo synced > file; sync").await;
    let running = workspace.exec(Command::new("sleep").arg("1000"));
    let killing = async {
        // The command runs, or is about to.
        kill_process(keeper, Signal::KILL).unwrap();
    };
    let (killed, ()) = tokio::join!(running, killing);
    killed.unwrap_err();
    ended(keeper).await;
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert!(info.stop_reason.unwrap().contains("unexpectedly"));
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "synced\n");
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty());
}

/// Its VMM ends a moment later, and uses the disk until then.
#[tokio::test]
async fn a_workspace_can_be_used_as_soon_as_its_keeper_was_killed() {
    let store = Store::kept();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo synced > file; sync").await;
    for round in 0..4 {
        let keeper = keeper_of(&workspace).await;
        kill_process(keeper, Signal::KILL).unwrap();
        ended(keeper).await;
        match round {
            0 => {}
            1 => drop(workspace.diff(BASELINE).await.unwrap()),
            2 => drop(workspace.snapshot("one").await.unwrap()),
            // With a handle that knows nothing of the run before.
            _ => {
                let other = store.workspaces.get(workspace.id()).await.unwrap();
                assert_eq!(failure(&other).await, "workspace-state");
            }
        }
        workspace.start().await.unwrap();
        assert_eq!(shell(&workspace, "cat file").await, "synced\n");
    }
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn why_a_keeper_could_not_start_is_told() {
    let store = Store::kept();
    let error = store
        .workspaces
        .create(new().user("who"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no such user"), "{error}");
    assert!(store.files().is_empty());

    let workspaces = Workspaces::at(store.root.path()).unwrap();
    let absent = workspaces.clone().keeper(Keeper::new("/does/not/exist"));
    let error = absent.create(new()).await.unwrap_err();
    assert!(error.to_string().contains("/does/not/exist"), "{error}");
    // One that ends at once.
    let useless = workspaces.clone().keeper(Keeper::new("/bin/false"));
    let error = useless.create(new()).await.unwrap_err();
    assert!(error.to_string().contains("ended"), "{error}");
    assert!(store.files().is_empty(), "{:?}", store.files());
    assert!(workspaces.list().await.unwrap().is_empty());
}
