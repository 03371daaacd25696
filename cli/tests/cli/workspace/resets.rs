//! What a reset takes away, and what a stop keeps.

use serde_json::json;

use super::{ENOUGH, Store};

#[test]
fn a_reset_recreates_everything_and_clears_commands_shells_and_services() {
    let store = Store::new();
    let id = store.create([]);
    let write = "echo 1 | tee file /etc/mark /dev/shm/mark >/dev/null";
    store.exec(&id, write).assert_printed("");
    let shell = store.text(["shell", "open", &id, "--id-only"]);
    let shell = shell.trim_end();
    let service = ["service", "start", &id, "sleeper", "--", "sleep", "1000"];
    store.text(service);
    store.text(["snapshot", "create", &id, "one"]);
    store.exec(&id, "echo 2 > file").assert_printed("");
    let status = store.json(["status", &id]);
    assert_eq!(
        (&status["command_count"], &status["running_service_count"]),
        (&2.into(), &1.into())
    );
    assert_eq!(status["last_reset_at"], json!(null));

    let mut times = Vec::new();
    for (reset, options) in [(1, &["--snapshot", "one"][..]), (2, &[])] {
        let reset_it = ["reset", &id].into_iter().chain(options.iter().copied());
        let status = store.json(reset_it);
        assert_eq!(status["state"], "running");
        assert_eq!(status["reset_count"], reset);
        for field in ["command_count", "service_count", "running_service_count"] {
            assert_eq!(status[field], 0, "{field}: {status}");
        }
        times.push(status["last_reset_at"].as_str().unwrap().to_owned());
        assert_eq!(store.json(["logs", &id])["commands"], json!([]));
        assert_eq!(store.json(["service", "list", &id])["services"], json!([]));
        let read = store.cli(["shell", "read", &id, shell]).finish();
        read.assert_failed(125, "is not a terminal");
        let line = "cat file; ls /dev/shm; pgrep sleep; ls /etc/mark 2>/dev/null; :";
        let expected = if reset == 1 { "1\n/etc/mark\n" } else { "" };
        let ended = store.exec(&id, line);
        assert_eq!(ended.stdout(), expected, "{ended:?}");
    }
    assert!(times[0] < times[1], "{times:?}");
    assert!(status["created_at"].as_str().unwrap() < &*times[0]);
    let list = store.json(["snapshot", "list", &id]);
    assert_eq!(list["snapshots"].as_array().unwrap().len(), 2, "{list}");
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn files_snapshots_and_the_history_are_there_until_a_workspace_is_deleted() {
    let store = Store::new();
    let id = store.create([]);
    store
        .exec(&id, "echo 1 > file; echo said")
        .assert_printed("said\n");
    store.text(["snapshot", "create", &id, "one"]);
    assert_eq!(store.exec(&id, "echo 2 > file; exit 3").code(), 3);
    let logs = store.json(["logs", &id]);
    assert_eq!(logs["commands"].as_array().unwrap().len(), 2, "{logs}");
    let snapshots = store.json(["snapshot", "list", &id]);
    let assert_kept = |state: &str| {
        assert_eq!(store.json(["status", &id])["state"], state);
        assert_eq!(store.json(["logs", &id]), logs, "{state}");
        let list = store.json(["snapshot", "list", &id]);
        assert_eq!(list, snapshots, "{state}");
    };
    for (end, state, begin) in [("pause", "paused", "resume"), ("stop", "stopped", "start")] {
        let keeper = store.keeper(&id);
        store.text([end, &id]);
        assert!(keeper.ends_within(ENOUGH), "{end}");
        assert_kept(state);
        store.text([begin, &id]);
        assert_kept("running");
        assert_eq!(store.text(["file", "read", &id, "file"]), "2\n");
    }
    let status = store.json(["status", &id]);
    assert_eq!(status["reset_count"], 0);
    store.text(["reset", &id, "--snapshot", "one"]);
    assert_eq!(store.text(["file", "read", &id, "file"]), "1\n");
    store.delete(&id);
    let logs = store.cli(["logs", &id]).finish();
    logs.assert_failed(125, "there is no workspace");
    store.assert_empty();
}
