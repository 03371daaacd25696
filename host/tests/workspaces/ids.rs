//! Ids that the caller gives.

use std::fs;

use vmcell::{
    Command, Error, Vm,
    service::ServiceSpec,
    workspace::{BASELINE, WorkspaceState, WorkspaceUpdate, Workspaces},
};

use crate::{Store, new, shell};

#[tokio::test]
async fn a_workspace_has_the_id_that_it_is_given_and_no_other_one_gets_it() {
    let store = Store::new();
    let workspaces = &store.workspaces;
    let first = workspaces.create_stopped(new().id("first")).await.unwrap();
    assert_eq!(first.id(), "first");
    assert_eq!(workspaces.get("first").await.unwrap().id(), "first");

    // Not as an id, and not as a name.
    let taken = "workspace-id-taken";
    let error = workspaces.create_stopped(new().id("first")).await;
    assert_eq!(error.unwrap_err().code(), taken);
    let error = first.fork(BASELINE, |new| new.id("first")).await;
    assert_eq!(error.unwrap_err().code(), taken);
    let error = workspaces.create_stopped(new().name("first")).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), taken);
    assert!(error.to_string().contains("choose another one"), "{error}");

    // A name is no id of another one, either.
    let second = first
        .fork(BASELINE, |new| new.id("second").name("name"))
        .await
        .unwrap();
    let error = second.update(WorkspaceUpdate::new().name("first")).await;
    assert_eq!(error.unwrap_err().code(), taken);
    let error = workspaces.create_stopped(new().id("name")).await;
    assert_eq!(error.unwrap_err().code(), "workspace-name-taken");
    assert_eq!(workspaces.get("name").await.unwrap().id(), "second");
    // Its own id is not that of another one.
    let info = second.update(WorkspaceUpdate::new().name("second")).await;
    assert_eq!(info.unwrap().name.as_deref(), Some("second"));

    for bad in ["../evil", ".hidden", "Upper", "lock", "listed", "", "-a"] {
        let error = workspaces.create_stopped(new().id(bad)).await.unwrap_err();
        assert!(error.to_string().contains("cannot be an id"), "{error}");
    }

    // It is free again when its workspace is gone.
    first.delete().await.unwrap();
    workspaces.create_stopped(new().id("first")).await.unwrap();
    // A copy may lack its lock.
    let lock = store.root.path().join("workspaces/second/changes.lock");
    fs::remove_file(lock).unwrap();
    let ids = workspaces.list().await.unwrap().into_iter().map(|it| it.id);
    let mut ids: Vec<_> = ids.collect();
    ids.sort();
    assert_eq!(ids, ["first", "second"]);
}

#[tokio::test]
async fn ids_that_are_made_begin_as_the_caller_says() {
    let store = Store::new();
    let workspaces = store.workspaces.clone().id_prefix("vm");
    let workspace = workspaces.create_stopped(new()).await.unwrap();
    assert!(workspace.id().starts_with("vm-"), "{}", workspace.id());
    assert_eq!(workspace.id().len(), 15);
    let fork = workspace.fork(BASELINE, |new| new).await.unwrap();
    assert!(fork.id().starts_with("vm-"), "{}", fork.id());
    let bad = workspaces.id_prefix("../");
    let error = bad.create_stopped(new()).await.unwrap_err();
    assert_eq!(error.code(), "invalid");
}

#[tokio::test]
async fn folders_of_others_are_neither_removed_nor_replaced() {
    let store = Store::new();
    let folder = store.root.path().join("workspaces");
    fs::create_dir_all(folder.join("notes")).unwrap();
    fs::write(folder.join("notes/text"), "mine").unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    // What a program leaves that dies while it creates one.
    fs::create_dir(folder.join("abandoned")).unwrap();
    fs::create_dir(folder.join("abandoned/layers")).unwrap();
    fs::write(folder.join("abandoned/changes.lock"), "").unwrap();
    fs::create_dir(folder.join(".new-begun")).unwrap();

    assert!(store.workspaces.list().await.unwrap().is_empty());
    for id in ["notes", "empty"] {
        let error = store.workspaces.create_stopped(new().id(id)).await;
        assert_eq!(error.unwrap_err().code(), "workspace-id-taken");
        assert!(store.workspaces.get(id).await.is_err());
    }
    let outcome = store.workspaces.delete_all().await.unwrap();
    assert!(outcome.deleted.is_empty() && outcome.failed.is_empty());
    assert_eq!(fs::read(folder.join("notes/text")).unwrap(), b"mine");
    assert!(folder.join("empty").is_dir());
    assert!(!folder.join("abandoned").exists());
    assert!(!folder.join(".new-begun").exists());
}

#[tokio::test]
async fn workspaces_with_the_same_id_below_two_roots_are_not_mixed_up() {
    let (one, other) = (Store::new(), Store::new());
    // Another VM of this user may have it, because tests run at the same time.
    let id = format!("twin-{}", std::process::id());
    let first = one.workspaces.create(new().id(&id)).await.unwrap();
    shell(&first, "echo first > file; sync").await;

    // Nothing is left of one that cannot be started.
    let error = other.workspaces.create(new().id(&id)).await.unwrap_err();
    assert_eq!(error.code(), "id-taken");
    assert!(error.to_string().contains("stop it"), "{error}");
    assert!(other.workspaces.list().await.unwrap().is_empty());

    let second = other
        .workspaces
        .create_stopped(new().id(&id))
        .await
        .unwrap();
    let error = second.start().await.unwrap_err();
    assert!(matches!(error, Error::IdTaken { .. }), "{error}");
    let info = second.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert_eq!(second.vm().await.unwrap_err().code(), "workspace-state");
    second.stop().await.unwrap();
    second.delete().await.unwrap();
    assert_eq!(shell(&first, "cat file").await, "first\n");

    // By another name of the same folder, it is the same one.
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    std::os::unix::fs::symlink(one.root.path(), &link).unwrap();
    let same = Workspaces::at(&link).unwrap().get(&id).await.unwrap();
    assert_eq!(shell(&same, "cat file").await, "first\n");
    same.delete().await.unwrap();
    assert!(matches!(Vm::attach(&id).await, Err(Error::NoSuchVm { .. })));
}

#[tokio::test]
async fn the_services_of_another_vm_with_the_same_id_are_not_counted() {
    let (one, other) = (Store::new(), Store::new());
    let id = format!("counted-{}", std::process::id());
    let first = one.workspaces.create(new().id(&id)).await.unwrap();
    let sleep = ServiceSpec::new(Command::from_argv(["sleep", "1000"]));
    let services = first.vm().await.unwrap().services();
    services.start("sleep", sleep).await.unwrap();

    // One that a program is about to start: it has the lock, and no VM yet.
    let second = other.workspaces.create_stopped(new().id(&id));
    let second = second.await.unwrap();
    let (from, to) = (one.folder(&first), other.folder(&second));
    fs::remove_file(to.join("owner.lock")).unwrap();
    fs::hard_link(from.join("owner.lock"), to.join("owner.lock")).unwrap();
    fs::copy(from.join("workspace.json"), to.join("workspace.json")).unwrap();

    for info in [
        second.info().await.unwrap(),
        other.workspaces.list().await.unwrap().remove(0),
    ] {
        assert_eq!(info.state, WorkspaceState::Running);
        assert_eq!(info.services, None);
    }
    let counts = first.info().await.unwrap().services.unwrap();
    assert_eq!((counts.total, counts.running), (1, 1));
    first.delete().await.unwrap();
}
