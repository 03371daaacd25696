//! Handles of workspaces that stay attached to its VM.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use vmcell::{
    Command,
    network::NetworkPolicy,
    workspace::{Workspace, WorkspaceState},
};

use crate::{
    Store,
    keepers::{ended, keeper_of},
    new, record_file, shell,
    two_programs::Program,
};

/// Returns the code of the error of a command.
pub(crate) async fn failure(workspace: &Workspace) -> &'static str {
    let failed = workspace.exec(Command::new("true")).await;
    failed.unwrap_err().code()
}

/// The other program works while this one does not look at its sockets, so nothing tells it
/// that its VM has ended.
#[tokio::test]
async fn what_another_program_has_done_is_seen_by_the_next_command() {
    let store = Store::kept();
    let mut other = Program::new(store.root.path());
    let it = store.workspaces.create(new().name("it")).await.unwrap();
    let in_memory = "echo in memory > /dev/shm/file; echo kept > file";
    shell(&it, in_memory).await;

    other.carry_out(&["stop", "start"]);
    assert_eq!(shell(&it, "ls /dev/shm; cat file").await, "kept\n");
    shell(&it, in_memory).await;
    other.carry_out(&["pause"]);
    // A command resumes it.
    assert_eq!(shell(&it, "cat /dev/shm/file").await, "in memory\n");
    other.carry_out(&["pause", "start"]);
    assert_eq!(shell(&it, "cat /dev/shm/file").await, "in memory\n");
    // But nothing else does.
    other.carry_out(&["pause"]);
    let error = it.vm().await.unwrap_err();
    assert!(error.to_string().contains("is paused"), "{error}");
    other.carry_out(&["start", "reset"]);
    assert_eq!(shell(&it, "ls").await, "");
    assert_eq!(it.history().await.unwrap().len(), 1);
    other.carry_out(&["stop"]);
    assert_eq!(failure(&it).await, "workspace-state");
    other.carry_out(&["start"]);
    shell(&it, "true").await;
    other.carry_out(&["delete"]);
    assert_eq!(failure(&it).await, "no-such-workspace");
}

#[tokio::test]
async fn a_keeper_that_was_killed_is_not_used_again() {
    let store = Store::kept();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "true").await;
    let keeper = keeper_of(&workspace).await;
    kill_process(keeper, Signal::KILL).unwrap();
    ended(keeper).await;
    assert_eq!(failure(&workspace).await, "workspace-state");
    workspace.start().await.unwrap();
    shell(&workspace, "true").await;
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_handle_that_is_attached_does_not_keep_the_workspace_running() {
    let store = Store::kept();
    let new = new().pause_when_idle(Duration::from_secs(2));
    let workspace = store.workspaces.create(new).await.unwrap();
    shell(&workspace, "echo in memory > /dev/shm/file").await;
    let keeper = keeper_of(&workspace).await;
    ended(keeper).await;
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Paused);
    assert!(info.is_paused_automatically);
    assert_eq!(shell(&workspace, "cat /dev/shm/file").await, "in memory\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_command_that_comes_when_it_is_about_to_be_paused_waits_and_resumes_it() {
    let store = Store::kept();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo in memory > /dev/shm/file").await;
    let keeper = keeper_of(&workspace).await;
    // As a program leaves it that was killed while it paused it.
    record_file::change(&store.folder(&workspace), |record| {
        record["run"]["next_pause"] = json!({ "began": record["run"]["began"] });
    });
    assert_eq!(shell(&workspace, "cat /dev/shm/file").await, "in memory\n");
    ended(keeper).await;
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn all_requests_of_a_handle_share_its_vm() {
    fn assert_shareable<T: Clone + Send + Sync>(_: &T) {}
    let store = Store::kept();
    let policy = NetworkPolicy::off().published_ports(true);
    let workspace = store.workspaces.create(new().network(policy)).await;
    let workspace = workspace.unwrap();
    assert_shareable(&workspace);
    let vm = workspace.vm().await.unwrap();
    let port = vm.ports().publish(8080).await.unwrap();
    drop(vm);
    shell(&workspace, "true").await;
    // A VM lists the ports that it and its clones have published.
    let list = workspace.clone().vm().await.unwrap().ports().list();
    assert_eq!(list[0].host_port(), port.host_port());
    let other = store.workspaces.get(workspace.id()).await.unwrap();
    let list = other.vm().await.unwrap().ports().list();
    assert!(list.is_empty(), "{list:?}");
    drop(workspace);
    port.closed().await;
    other.delete().await.unwrap();
}

#[tokio::test]
async fn a_command_that_is_given_up_does_not_disturb_the_next_one() {
    let store = Store::kept();
    let workspace = store.workspaces.create(new()).await.unwrap();
    for polls in 0..20 {
        let giving_up = async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = workspace.exec(Command::new("sleep").arg("1000")) => unreachable!(),
            () = giving_up => {}
        }
        assert_eq!(shell(&workspace, "echo next").await, "next\n");
    }
    workspace.delete().await.unwrap();
}

/// A runtime that stands still serves no connection.
#[test]
fn a_handle_can_be_used_in_another_runtime_than_before() {
    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }
    let store = Store::kept();
    let [first, second] = [runtime(), runtime()];
    let workspace = first.block_on(async {
        let workspace = store.workspaces.create(new()).await.unwrap();
        shell(&workspace, "true").await;
        workspace
    });
    second.block_on(shell(&workspace, "true"));
    first.block_on(shell(&workspace, "true"));
    drop(first);
    second.block_on(shell(&workspace, "true"));
    second.block_on(workspace.delete()).unwrap();
}
