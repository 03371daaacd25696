//! Workspaces whose memory is on the disk.

use std::time::{Duration, SystemTime};

use vmcell::{
    Command, Vm,
    workspace::{BASELINE, WorkspaceState},
};

use crate::{Store, new, shell};

#[tokio::test]
async fn processes_go_on_after_a_pause() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    let boot_id = shell(&workspace, "cat /proc/sys/kernel/random/boot_id").await;
    shell(
        &workspace,
        "mkfifo wake; echo in memory > /dev/shm/file; echo 1 > file",
    )
    .await;
    let vm = workspace.vm().await.unwrap();
    let waiting = Command::shell("read word < /workspace/wake; echo $word > /workspace/woken");
    vm.spawn(waiting.tag("waiting")).await.unwrap();
    workspace.pause().await.unwrap();
    workspace.pause().await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Paused);
    assert!(Vm::attach(workspace.id()).await.is_err());
    let error = workspace.vm().await.unwrap_err();
    assert!(error.to_string().contains("is paused"), "{error}");
    let error = workspace.disk().await.unwrap_err();
    assert_eq!(error.code(), "workspace-state");
    let error = workspace.snapshot("while-paused").await.unwrap_err();
    assert_eq!(error.code(), "workspace-state");

    let vm = workspace.start().await.unwrap();
    let line = "cat /dev/shm/file file; echo 2 > file; echo hello > wake";
    assert_eq!(shell(&workspace, line).await, "in memory\n1\n");
    assert!(vm.processes().wait("waiting").await.unwrap().success());
    assert_eq!(shell(&workspace, "cat woken").await, "hello\n");
    // It is the same VM for others, with secrets of its own.
    let new_boot_id = shell(&workspace, "cat /proc/sys/kernel/random/boot_id").await;
    assert_ne!(new_boot_id, boot_id);

    // Again, and this time its processes are given up.
    workspace.pause().await.unwrap();
    workspace.stop().await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    let disk = workspace.disk().await.unwrap();
    assert_eq!(disk.read("/workspace/file").unwrap(), b"2\n");
    drop(disk);
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "ls /dev/shm; cat file").await, "2\n");
    workspace.pause().await.unwrap();
    workspace.reset(BASELINE).await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn a_snapshot_can_be_taken_after_a_pause_and_the_next_pause_has_it_below() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo 1 > file").await;
    workspace.pause().await.unwrap();
    // A command starts it.
    assert_eq!(shell(&workspace, "cat file").await, "1\n");
    workspace.snapshot("one").await.unwrap();
    shell(&workspace, "echo 2 > file").await;
    workspace.pause().await.unwrap();
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "2\n");
    workspace.reset("one").await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "1\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_workspace_that_nobody_uses_is_paused_and_goes_on_with_the_next_command() {
    let store = Store::new();
    let new = new().pause_when_idle(Duration::from_secs(2));
    let workspace = store.workspaces.create(new).await.unwrap();
    assert!(store.workspaces.list().await.unwrap()[0].paused.is_none());
    shell(&workspace, "echo in memory > /dev/shm/file").await;
    // Longer than it may be unused.
    shell(&workspace, "sleep 4").await;
    let vm = workspace.vm().await.unwrap();
    vm.ended().await;
    // As soon as its record is written, which nobody can change before.
    workspace.touch().await.unwrap();
    let error = workspace.snapshot("a").await.unwrap_err();
    assert!(error.to_string().contains("is paused"), "{error}");
    let list = store.workspaces.list().await.unwrap();
    assert_eq!(list[0].state, WorkspaceState::Paused);
    assert!(list[0].is_paused_automatically && list[0].is_newly_paused);
    let list = store.workspaces.list().await.unwrap();
    assert!(list[0].is_paused_automatically && !list[0].is_newly_paused);
    assert_eq!(shell(&workspace, "cat /dev/shm/file").await, "in memory\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_workspace_whose_processes_are_counted_is_not_used_by_that() {
    let store = Store::new();
    let new = new().pause_when_idle(Duration::from_secs(4));
    let workspace = store.workspaces.create(new).await.unwrap();
    let vm = workspace.vm().await.unwrap();
    vm.spawn(Command::new("sleep").arg("1000")).await.unwrap();
    let mut counted = 0;
    while let Ok(sample) = vm.next_sample().await {
        counted += u32::from(sample.processes == Some(1));
    }
    assert!(counted >= 2, "{counted}");
    vm.ended().await;
    // As soon as its record is written, which nobody can change before.
    let error = workspace.snapshot("a").await.unwrap_err();
    assert!(error.to_string().contains("is paused"), "{error}");
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Paused);
    assert!(info.is_paused_automatically);
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_workspace_is_deleted_when_its_time_is_over() {
    let store = Store::new();
    let kept = store.workspaces.create(new()).await.unwrap();
    let short = Duration::from_secs(1);
    // It has no VM, so whoever asks for it deletes it.
    let stopped = kept
        .fork(BASELINE, |new| new.lifetime(short))
        .await
        .unwrap();
    let expires = stopped.info().await.unwrap().expires.unwrap();
    // However long it takes to create it.
    let new = new().lifetime(Duration::from_secs(5));
    let running = store.workspaces.create(new).await.unwrap();
    if let Ok(vm) = running.vm().await {
        vm.ended().await;
    }
    // Usually it was before.
    let left = expires.duration_since(SystemTime::now());
    tokio::time::sleep(left.unwrap_or_default()).await;
    let reaped = store.workspaces.reap_expired().await.unwrap();
    assert!(reaped.contains(&stopped.id().to_owned()), "{reaped:?}");
    let list = store.workspaces.list().await.unwrap();
    let ids: Vec<_> = list.iter().map(|info| info.id.as_str()).collect();
    assert_eq!(ids, [kept.id()]);
    kept.delete().await.unwrap();
    assert!(store.files().is_empty(), "{:?}", store.files());
}
