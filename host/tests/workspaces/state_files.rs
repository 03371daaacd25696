//! Files of workspaces that are damaged, missing, newer, or those of another user.

use std::{
    fs::{self, File},
    os::unix::fs::chown,
    path::Path,
};

use vmcell::workspace::{BASELINE, CommandState, Workspace, WorkspaceState, Workspaces};

use crate::{Store, new, record_file, shell};

/// Checks that a workspace cannot be used, and that the error names a file; that others are
/// listed nevertheless.
async fn is_refused(store: &Store, workspace: &Workspace, code: &str, file: &str, case: &str) {
    let info = workspace.info().await.map(drop);
    let start = workspace.start().await.map(drop);
    let snapshot = workspace.snapshot("a").await.map(drop);
    for refused in [info, start, snapshot] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), code, "{case}: {error}");
        assert!(error.to_string().contains(file), "{case}: {error}");
    }
    let list = store.workspaces.list().await.unwrap();
    assert!(list.iter().all(|info| info.id != workspace.id()), "{case}");
    assert_eq!(list.len(), 1, "{case}");
}

#[tokio::test]
async fn a_record_that_cannot_be_used_is_named_and_its_workspace_can_be_deleted() {
    let store = Store::new();
    let kept = store.workspaces.create(new()).await.unwrap();
    kept.stop().await.unwrap();
    let damaged = kept.fork(BASELINE, |new| new.name("it")).await.unwrap();
    let folder = store.folder(&damaged);
    let path = folder.join("workspace.json");
    let file = path.to_str().unwrap();
    let json = fs::read(&path).unwrap();
    // The last byte is the end of the line.
    for length in (0..json.len() - 1).step_by(json.len() / 50) {
        fs::write(&path, &json[..length]).unwrap();
        let case = format!("{length} bytes");
        is_refused(&store, &damaged, "workspace-damaged", file, &case).await;
    }
    fs::write(&path, vec![0; json.len()]).unwrap();
    is_refused(&store, &damaged, "workspace-damaged", file, "zeros").await;
    fs::copy(store.folder(&kept).join("workspace.json"), &path).unwrap();
    is_refused(&store, &damaged, "workspace-damaged", file, "of another").await;
    fs::write(&path, &json).unwrap();
    record_file::change(&folder, |record| record["version"] = 99.into());
    is_refused(&store, &damaged, "workspace-newer", file, "newer").await;
    let unreadable = store.workspaces.unreadable().await.unwrap();
    assert_eq!(unreadable.len(), 1, "{unreadable:?}");
    assert_eq!(unreadable[0].0, damaged.id());
    // It is found by its id, and nobody knows its name.
    assert!(store.workspaces.get("it").await.is_err());
    let damaged = store.workspaces.get(damaged.id()).await.unwrap();
    damaged.delete().await.unwrap();
    assert_eq!(store.files(), [kept.id()]);
    let list = store.workspaces.unreadable().await.unwrap();
    assert!(list.is_empty(), "{list:?}");
    // It could be repaired, too.
    let fork = kept.fork(BASELINE, |new| new.name("it")).await.unwrap();
    let path = store.folder(&fork).join("workspace.json");
    let json = fs::read(&path).unwrap();
    fs::write(&path, &json[..100]).unwrap();
    is_refused(
        &store,
        &fork,
        "workspace-damaged",
        "workspace.json",
        "cut off",
    )
    .await;
    fs::write(&path, &json).unwrap();
    assert_eq!(fork.info().await.unwrap().name.as_deref(), Some("it"));
    fork.delete().await.unwrap();
    kept.delete().await.unwrap();
}

#[tokio::test]
async fn one_that_runs_can_be_deleted_when_its_record_is_damaged() {
    let store = Store::kept();
    let workspace = store.workspaces.create(new()).await.unwrap();
    let keeper = crate::keepers::keeper_of(&workspace).await;
    fs::write(store.folder(&workspace).join("workspace.json"), "{").unwrap();
    workspace.delete().await.unwrap();
    crate::keepers::ended(keeper).await;
    assert!(store.files().is_empty(), "{:?}", store.files());
}

/// Nobody: not the user that runs the tests.
const OTHER: u32 = 65_534;

#[tokio::test]
async fn files_of_another_user_are_not_used() {
    if !rustix::process::geteuid().is_root() {
        return println!("not tested: only root can give files to another user");
    }
    let store = Store::new();
    let kept = store.workspaces.create(new()).await.unwrap();
    kept.stop().await.unwrap();
    let fork = kept.fork(BASELINE, |new| new).await.unwrap();
    let give = |path: &Path, user| chown(path, Some(user), None).unwrap();
    let folder = store.folder(&fork);
    for path in [&folder.join("workspace.json"), &folder] {
        give(path, OTHER);
        let error = fork.info().await.unwrap_err().to_string();
        assert!(error.contains("belongs to another user"), "{error}");
        let path_text = path.to_str().unwrap();
        is_refused(&store, &fork, "workspace-damaged", path_text, path_text).await;
        give(path, 0);
        fork.info().await.unwrap();
    }
    give(&folder, OTHER);
    fork.delete().await.unwrap();
    let root = store.root.path().join("workspaces");
    give(&root, OTHER);
    let error = Workspaces::at(store.root.path()).unwrap_err();
    assert!(
        error.to_string().contains("belongs to another user"),
        "{error}"
    );
    give(&root, 0);
    kept.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn a_history_that_is_damaged_does_not_disturb_what_runs() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo first").await;
    let history = store.folder(&workspace).join("history");
    let first = fs::read(history.join("00000001.json")).unwrap();
    let line = first.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let cut = fs::write(history.join("00000002.json"), &first[..line + 20]);
    cut.unwrap();
    fs::write(history.join("00000003.json"), &first[..line - 1]).unwrap();
    fs::write(history.join("00000004.json"), [0xff; 1000]).unwrap();
    let large = File::create(history.join("00000005.json")).unwrap();
    large.set_len(1 << 40).unwrap();
    fs::create_dir(history.join("00000006.json")).unwrap();
    fs::write(history.join("18446744073709551615.json"), "").unwrap();
    fs::write(history.join("notes.txt"), "mine").unwrap();
    assert_eq!(shell(&workspace, "echo last").await, "last\n");
    let list = workspace.history().await.unwrap();
    let states: Vec<_> = list
        .iter()
        .map(|it| (it.number, it.state.clone()))
        .collect();
    let ended = CommandState::Ended {
        cause: "code".to_owned(),
        code: Some(0),
    };
    let expected = [
        (1, ended.clone()),
        (2, CommandState::Interrupted),
        (7, ended),
    ];
    assert_eq!(states, expected);
    workspace.info().await.unwrap();
    workspace.reset(BASELINE).await.unwrap();
    assert!(workspace.history().await.unwrap().is_empty());
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_layer_that_is_missing_or_damaged_is_named() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo kept > file").await;
    workspace.stop().await.unwrap();
    let layers = store.folder(&workspace).join("layers");
    let away = store.root.path().join("away");
    for layer in ["1.qcow2", "2.qcow2"] {
        let path = layers.join(layer);
        fs::rename(&path, &away).unwrap();
        let missing = workspace.start().await.map(drop).unwrap_err();
        fs::write(&path, "").unwrap();
        let empty = workspace.start().await.map(drop).unwrap_err();
        fs::copy(&away, &path).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(100)
            .unwrap();
        let cut = workspace.start().await.map(drop).unwrap_err();
        for error in [missing, empty, cut] {
            assert!(error.to_string().contains(layer), "{layer}: {error}");
        }
        let info = workspace.info().await.unwrap();
        assert_eq!(info.state, WorkspaceState::Stopped);
        assert!(info.stop_reason.unwrap().contains(layer));
        fs::rename(&away, &path).unwrap();
    }
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "kept\n");
    workspace.stop().await.unwrap();
    fs::remove_dir_all(&layers).unwrap();
    let id = workspace.id().to_owned();
    assert_eq!(store.workspaces.list().await.unwrap()[0].id, id);
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn one_whose_memory_is_damaged_stays_paused_and_can_be_stopped() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(
        &workspace,
        "echo kept > file; sync; echo in memory > /dev/shm/file",
    )
    .await;
    workspace.pause().await.unwrap();
    let memory = store.folder(&workspace).join("memory");
    let away = store.root.path().join("away");
    let refused = async |case: &str, file: &Path| {
        let error = workspace.start().await.map(drop).unwrap_err();
        assert!(
            error.to_string().contains(file.to_str().unwrap()),
            "{case}: {error}"
        );
        let info = workspace.info().await.unwrap();
        assert_eq!(info.state, WorkspaceState::Paused, "{case}");
    };
    fs::rename(&memory, &away).unwrap();
    refused("missing", &memory).await;
    fs::rename(&away, &memory).unwrap();
    let files = fs::read_dir(&memory).unwrap();
    for path in files.map(|entry| entry.unwrap().path()) {
        let length = fs::metadata(&path).unwrap().len();
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::copy(&path, &away).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(length / 2).unwrap();
        refused(&format!("half of {name}"), &memory).await;
        fs::remove_file(&path).unwrap();
        refused(&format!("without {name}"), &memory).await;
        fs::rename(&away, &path).unwrap();
    }
    // Whole again.
    assert_eq!(shell(&workspace, "cat /dev/shm/file").await, "in memory\n");
    workspace.pause().await.unwrap();
    fs::remove_dir_all(&memory).unwrap();
    refused("missing again", &memory).await;
    workspace.stop().await.unwrap();
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file; ls /dev/shm").await, "kept\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_program_that_died_while_it_created_a_workspace_has_not_taken_its_name() {
    let store = Store::new();
    let source = store.workspaces.create(new()).await.unwrap();
    source.stop().await.unwrap();
    // Without a record, and nobody has its locks.
    let left = store.root.path().join("workspaces/ws-abcdefghjkmn");
    fs::create_dir_all(left.join("layers")).unwrap();
    fs::write(left.join("name"), "it").unwrap();
    fs::write(left.join("changes.lock"), "").unwrap();
    let it = source.fork(BASELINE, |new| new.name("it")).await.unwrap();
    assert!(!left.exists());
    let error = source.fork(BASELINE, |new| new.name("it")).await;
    assert_eq!(error.unwrap_err().code(), "workspace-name-taken");
    it.delete().await.unwrap();
    source.delete().await.unwrap();
    assert!(store.files().is_empty());
}
