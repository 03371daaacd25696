//! Clocks that are set back a year, or forward ten. For a workspace, that is the same as
//! times in its files that are a year in the future, or ten years in the past.

use std::{
    fs::File,
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use vmcell::workspace::{BASELINE, Workspace, WorkspaceInfo, WorkspaceState};

use crate::{Store, new, record_file, shell};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Sets the clock back a year, as a workspace sees it.
fn set_back(store: &Store, workspace: &Workspace) {
    move_times(store, workspace, |time| time + YEAR);
}

/// Sets the clock forward ten years, as a workspace sees it.
fn set_forward(store: &Store, workspace: &Workspace) {
    move_times(store, workspace, |time| time - 10 * YEAR);
}

fn move_times(store: &Store, workspace: &Workspace, moved: impl Fn(SystemTime) -> SystemTime) {
    let folder = store.folder(workspace);
    record_file::change(&folder, |record| move_numbers(record, &moved));
    move_file(&folder.join("activity"), &moved);
    move_file(&store.root.path().join("workspaces/listed"), &moved);
}

/// Moves all times of a record but that of its run, by which its program knows it.
fn move_numbers(value: &mut Value, moved: &impl Fn(SystemTime) -> SystemTime) {
    for (key, value) in value.as_object_mut().into_iter().flatten() {
        let names = [
            "created",
            "last_activity",
            "expires",
            "last_reset",
            "began",
            "ended",
        ];
        match value.as_u64() {
            Some(milliseconds) if names.contains(&key.as_str()) => {
                let time = SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
                let since = moved(time).duration_since(SystemTime::UNIX_EPOCH);
                *value = json!(u64::try_from(since.unwrap().as_millis()).unwrap());
            }
            _ if key != "run" => move_numbers(value, moved),
            _ => {}
        }
    }
}

fn move_file(path: &Path, moved: &impl Fn(SystemTime) -> SystemTime) {
    if let Ok(file) = File::options().write(true).open(path) {
        let time = file.metadata().unwrap().modified().unwrap();
        file.set_modified(moved(time)).unwrap();
    }
}

async fn only(store: &Store) -> WorkspaceInfo {
    let list = store.workspaces.list().await.unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
    list.into_iter().next().unwrap()
}

#[tokio::test]
async fn a_workspace_is_still_paused_when_nobody_uses_it_after_the_clock_was_set_back() {
    let store = Store::new();
    let idle = Duration::from_secs(2);
    let new = new().pause_when_idle(idle);
    let workspace = store.workspaces.create(new).await.unwrap();
    shell(&workspace, "echo in memory > /dev/shm/file").await;
    let vm = workspace.vm().await.unwrap();
    set_back(&store, &workspace);
    let info = only(&store).await;
    assert_eq!(info.state, WorkspaceState::Running);
    assert!(info.last_activity <= SystemTime::now());
    // Not in a year.
    tokio::time::timeout(Duration::from_secs(60), vm.ended())
        .await
        .unwrap();
    // As soon as its record is written, which nobody can change before.
    assert!(workspace.snapshot("a").await.is_err());
    let info = only(&store).await;
    assert!(info.is_paused_automatically && info.is_newly_paused);
    assert!(!only(&store).await.is_newly_paused);

    // Again, while it is paused. It may be told once more, but not every time.
    set_back(&store, &workspace);
    let paused = only(&store).await.paused.unwrap();
    assert!(paused > SystemTime::now());
    for _ in 0..2 {
        let info = only(&store).await;
        assert_eq!(info.state, WorkspaceState::Paused);
        assert!(!info.is_newly_paused);
    }
    workspace.touch().await.unwrap();
    assert!(only(&store).await.last_activity <= SystemTime::now());
    assert_eq!(shell(&workspace, "cat /dev/shm/file").await, "in memory\n");
    let history = workspace.history().await.unwrap();
    assert_eq!(history.len(), 2);
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn nothing_is_lost_that_nobody_wants_to_lose_when_the_clock_is_set_forward() {
    let store = Store::new();
    let new = new().pause_when_idle(Duration::from_secs(3));
    let workspace = store.workspaces.create(new).await.unwrap();
    shell(&workspace, "echo in memory > /dev/shm/file").await;
    let vm = workspace.vm().await.unwrap();
    set_forward(&store, &workspace);
    assert!(only(&store).await.created < SystemTime::now() - 9 * YEAR);
    // As one that nobody has used for ten years.
    tokio::time::timeout(Duration::from_secs(60), vm.ended())
        .await
        .unwrap();
    assert!(workspace.snapshot("a").await.is_err());
    let info = only(&store).await;
    assert!(info.is_paused_automatically && info.is_newly_paused);
    set_forward(&store, &workspace);
    assert_eq!(only(&store).await.state, WorkspaceState::Paused);
    assert_eq!(shell(&workspace, "cat /dev/shm/file").await, "in memory\n");

    // A lifetime is one of the clock.
    let day = Duration::from_secs(24 * 3600);
    let fork = workspace
        .fork(BASELINE, |new| new.lifetime(day))
        .await
        .unwrap();
    set_back(&store, &fork);
    assert!(store.workspaces.reap_expired().await.unwrap().is_empty());
    set_forward(&store, &fork);
    let reaped = store.workspaces.reap_expired().await.unwrap();
    assert_eq!(reaped, [fork.id()]);
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty());
}
