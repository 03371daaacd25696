//! Creating, stopping, starting, changing and deleting.

use std::fs;

use vmcell::{
    Command, Error, Vm,
    network::NetworkPolicy,
    workspace::{CommandState, WorkspaceError, WorkspaceState, WorkspaceUpdate, Workspaces},
};

use crate::{Store, new, shell};

#[tokio::test]
async fn a_workspace_keeps_its_files_when_it_is_stopped_and_started() {
    let store = Store::new();
    let seed = tempfile::tempdir().unwrap();
    fs::create_dir(seed.path().join("src")).unwrap();
    fs::write(seed.path().join("src/main.c"), "int main;\n").unwrap();
    let new = new()
        .name("build")
        .label("team", "compilers")
        .seed(seed.path());
    let workspace = store.workspaces.create(new).await.unwrap();

    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Running);
    assert_eq!((info.vcpus, info.memory_mib), (1, 128));
    assert_eq!(info.network, NetworkPolicy::off());
    let folder = fs::canonicalize(seed.path()).unwrap();
    assert_eq!(info.seed.path, Some(folder));
    assert_eq!((info.seed.entries, info.seed.bytes), (2, 10));

    assert_eq!(
        shell(&workspace, "pwd; cat src/main.c").await,
        "/workspace\nint main;\n"
    );
    shell(&workspace, "echo done > result").await;
    // Starting it again has no effect.
    workspace.start().await.unwrap();
    workspace.stop().await.unwrap();
    workspace.stop().await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert_eq!(info.stop_reason.as_deref(), Some("stopped"));
    let error = workspace.exec(Command::new("true")).await.unwrap_err();
    assert_eq!(error.code(), "workspace-state");
    assert!(error.to_string().contains("start it first"), "{error}");

    // By its name, as another program would.
    let workspaces = Workspaces::at(store.root.path()).unwrap();
    let workspace = workspaces.get("build").await.unwrap();
    let disk = workspace.disk().await.unwrap();
    assert_eq!(disk.read("/workspace/result").unwrap(), b"done\n");
    drop(disk);
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat result").await, "done\n");
    let error = workspace.disk().await.unwrap_err();
    assert!(error.to_string().contains("stop it first"), "{error}");
    let id = workspace.id().to_owned();
    workspace.delete().await.unwrap();
    let error = workspaces.get(&id).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Workspace(WorkspaceError::NotFound { .. })
    ));
    assert!(matches!(Vm::attach(&id).await, Err(Error::NoSuchVm { .. })));
    assert!(store.files().is_empty(), "{:?}", store.files());
}

#[tokio::test]
async fn commands_have_the_user_and_the_variables_of_the_workspace() {
    let store = Store::new();
    let seed = tempfile::tempdir().unwrap();
    fs::write(seed.path().join("file"), "").unwrap();
    let new = new()
        .user("1000:1000")
        .env("A", "1")
        .env("B", "2")
        .seed(seed.path());
    let workspace = store.workspaces.create(new).await.unwrap();
    let line = "id -u; echo $A $B; stat -c %u file; touch new";
    assert_eq!(shell(&workspace, line).await, "1000\n1 2\n1000\n");
    let command = Command::shell("id -u; echo $A $B; pwd");
    let command = command.user("root").env("B", "3").current_dir("/");
    let output = workspace.exec(command).await.unwrap();
    assert_eq!(output.stdout_text(), "0\n1 3\n/\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn names_and_labels_can_be_changed_and_nothing_else_changes() {
    let store = Store::new();
    let first = store.workspaces.create(new().name("first")).await.unwrap();
    let error = store
        .workspaces
        .create(new().name("first"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "workspace-name-taken");
    let second = first
        .fork("baseline", |new| new.name("second").label("a", "1"))
        .await
        .unwrap();
    let error = second
        .update(WorkspaceUpdate::new().name("first"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "workspace-name-taken");
    // Also of one that runs.
    let update = WorkspaceUpdate::new().name("third").label("b", "2");
    let info = first.update(update).await.unwrap();
    assert_eq!(
        (info.name.as_deref(), info.state),
        (Some("third"), WorkspaceState::Running)
    );
    assert_eq!(info.labels["b"], "2");
    let update = WorkspaceUpdate::new().name("first").clear_labels();
    let info = second.update(update).await.unwrap();
    assert_eq!(
        (info.name.as_deref(), info.labels.len()),
        (Some("first"), 0)
    );
    let info = first
        .update(WorkspaceUpdate::new().clear_name())
        .await
        .unwrap();
    assert_eq!(info.name, None);
    assert_eq!(
        store.workspaces.get("first").await.unwrap().id(),
        second.id()
    );

    // The one that was used last comes first.
    second.start().await.unwrap();
    let list = store.workspaces.list().await.unwrap();
    let ids: Vec<_> = list.iter().map(|info| info.id.as_str()).collect();
    assert_eq!(ids, [second.id(), first.id()]);
    first.delete().await.unwrap();
    // Its layers were shared.
    assert_eq!(shell(&second, "echo hello").await, "hello\n");
    second.delete().await.unwrap();
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn what_cannot_be_created_leaves_nothing_behind() {
    let store = Store::new();
    for (new, expected) in [
        (new().name("../evil"), "cannot be a name"),
        (new().label("a", "\u{1b}"), "control characters"),
        (new().seed("/does/not/exist"), "/does/not/exist"),
        (new().seed("/etc/passwd"), "neither a folder nor"),
        (new().memory_mib(1), "memory"),
        (new().user("nobody-knows-me"), "no such user"),
    ] {
        let error = store.workspaces.create(new).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(store.files().is_empty(), "{expected}: {:?}", store.files());
    }
}

#[tokio::test]
async fn a_vm_that_ends_by_itself_leaves_a_stopped_workspace() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo kept > file; sync").await;
    let vm = workspace.vm().await.unwrap();
    vm.kill().await.unwrap();
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "kept\n");
    workspace.vm().await.unwrap().kill().await.unwrap();
    // Waits until that is known.
    workspace.stop().await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file").await, "kept\n");
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn programs_that_start_and_stop_the_same_one_at_once_do_not_disturb_each_other() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    workspace.stop().await.unwrap();
    let starts = (0..4).map(|_| workspace.start());
    for started in futures_util::future::join_all(starts).await {
        assert!(started.unwrap().exec(["true"]).await.unwrap().success());
    }
    let stops = (0..4).map(|_| workspace.stop());
    for stopped in futures_util::future::join_all(stops).await {
        stopped.unwrap();
    }
    let ends = (0..4).map(|_| workspace.clone().delete());
    let ends = futures_util::future::join_all(ends).await;
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1, "{ends:?}");
    assert!(store.files().is_empty());
}

#[tokio::test]
async fn the_history_has_all_commands_until_a_reset() {
    let store = Store::new();
    let workspace = store.workspaces.create(new()).await.unwrap();
    shell(&workspace, "echo out; echo error >&2").await;
    let command = Command::new("sleep")
        .arg("100")
        .user("1000")
        .env("TOKEN", "hidden");
    let command = command.timeout(std::time::Duration::from_millis(200));
    workspace.exec(command).await.unwrap_err();
    workspace
        .exec(Command::new("/does/not/exist"))
        .await
        .unwrap_err();
    workspace.stop().await.unwrap();
    // It is there without a VM.
    let history = workspace.history().await.unwrap();
    assert_eq!(workspace.info().await.unwrap().command_count, 3);
    let [first, second, third] = &history[..] else {
        panic!("{history:?}");
    };
    assert_eq!(first.argv, ["/bin/sh", "-c", "echo out; echo error >&2"]);
    assert_eq!((first.number, first.cwd.as_str()), (1, "/workspace"));
    assert_eq!(
        (first.stdout.text.as_str(), first.stderr.text.as_str()),
        ("out\n", "error\n")
    );
    assert_eq!(first.stdout.bytes, 4);
    assert!(
        first.stdout.sha256.starts_with("54034ac5"),
        "{}",
        first.stdout.sha256
    );
    let exited = CommandState::Ended {
        cause: "code".to_owned(),
        code: Some(0),
    };
    assert_eq!(first.state, exited);
    assert!(first.ended.unwrap() >= first.began);
    assert_eq!(second.user.as_deref(), Some("1000"));
    let timed_out = CommandState::Ended {
        cause: "timeout".to_owned(),
        code: None,
    };
    assert_eq!(second.state, timed_out);
    assert!(!format!("{second:?}").contains("hidden"));
    assert!(
        matches!(&third.state, CommandState::Failed(why) if why.contains("not")),
        "{third:?}"
    );
    workspace.reset("baseline").await.unwrap();
    assert!(workspace.history().await.unwrap().is_empty());
    workspace.delete().await.unwrap();
}
