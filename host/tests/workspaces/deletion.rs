//! Deleting all workspaces at once.

use std::fs;

use vmcell::{Error, Vm};

use crate::{Store, new};

#[tokio::test]
async fn all_are_deleted_and_one_that_cannot_be_does_not_keep_the_others() {
    let store = Store::new();
    let other = Store::new();
    let kept = other.workspaces.create_stopped(new()).await.unwrap();
    let running = store.workspaces.create(new()).await.unwrap();
    let stopped = store.workspaces.create_stopped(new().id("a")).await;
    let stuck = store.workspaces.create_stopped(new().id("stuck")).await;
    let (stopped, stuck) = (stopped.unwrap(), stuck.unwrap());
    // A folder cannot get the name of a file.
    let in_the_way = store.root.path().join("workspaces/.deleted-stuck");
    fs::write(&in_the_way, "").unwrap();

    let outcome = store.workspaces.delete_all().await.unwrap();
    assert_eq!(outcome.deleted, [stopped.id(), running.id()]);
    let [failed] = &outcome.failed[..] else {
        panic!("{outcome:?}");
    };
    assert_eq!(failed.id, "stuck");
    assert!(matches!(failed.error, Error::Host { .. }), "{failed:?}");
    let gone = Vm::attach(running.id()).await;
    assert!(matches!(gone, Err(Error::NoSuchVm { .. })));
    stuck.info().await.unwrap();

    fs::remove_file(in_the_way).unwrap();
    let outcome = store.workspaces.delete_all().await.unwrap();
    assert_eq!(outcome.deleted, ["stuck"]);
    let outcome = store.workspaces.delete_all().await.unwrap();
    assert!(outcome.deleted.is_empty() && outcome.failed.is_empty());
    assert!(store.files().is_empty(), "{:?}", store.files());
    // Those below another root are not affected.
    kept.info().await.unwrap();
}

#[tokio::test]
async fn one_that_is_being_created_is_waited_for() {
    let store = Store::new();
    let workspaces = store.workspaces.clone();
    let creating = tokio::spawn(async move { workspaces.create(new()).await });
    while store.files().is_empty() {
        tokio::task::yield_now().await;
    }
    let outcome = store.workspaces.delete_all().await.unwrap();
    assert!(outcome.failed.is_empty(), "{outcome:?}");
    assert!(store.files().is_empty(), "{:?}", store.files());
    creating.await.unwrap().unwrap();
    assert!(store.workspaces.list().await.unwrap().is_empty());
}
