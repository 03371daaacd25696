//! What was run in a workspace, what has changed, and what happens when nobody uses it.

use std::fs;

use super::{ENOUGH, Store, text_of};

#[test]
fn the_history_and_the_changes_of_a_workspace_are_printed() {
    let store = Store::new();
    let seed = tempfile::tempdir().unwrap();
    fs::write(seed.path().join("file"), "one\n").unwrap();
    let id = store.create(["--seed-path", text_of(seed.path())]);
    let ended = store.exec(&id, "echo two >> file; echo said; echo warned >&2; exit 3");
    assert_eq!(ended.code(), 3, "{ended:?}");
    let logs = store.json(["logs", &id]);
    let command = &logs["commands"][0];
    assert_eq!(command["exit_code"], 3, "{logs}");
    assert_eq!(command["state"], "ended");
    assert_eq!(command["stdout"]["text"], "said\n");
    assert_eq!(command["stderr"]["text"], "warned\n");
    assert_eq!(command["cwd"], "/workspace");
    let text = store.text(["logs", &id]);
    assert!(text.contains("exit code 3: sh -c"), "{text}");
    assert!(text.ends_with("said\nwarned\n"), "{text}");
    assert_eq!(store.json(["status", &id])["command_count"], 1);

    let patch = store.text(["diff", &id]);
    assert!(patch.contains("+two\n"), "{patch}");
    let names = store.text(["diff", &id, "--name-status"]);
    assert!(names.contains("file") && !names.contains("two"), "{names}");
    let diff = store.json(["diff", &id]);
    assert_eq!(diff["changes"].as_array().unwrap().len(), 1, "{diff}");
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn a_workspace_is_paused_when_nobody_uses_it_and_deleted_when_its_time_is_over() {
    let store = Store::new();
    let id = store.create(["--idle-seconds", "1"]);
    let keeper = store.keeper(&id);
    assert!(keeper.ends_within(ENOUGH));
    let list = store.json(["list"]);
    assert_eq!(list["workspaces"][0]["state"], "paused", "{list}");
    assert_eq!(list["workspaces"][0]["newly_paused"], true);
    assert_eq!(store.json(["list"])["workspaces"][0]["newly_paused"], false);
    let refused = store
        .cli(["exec", &id, "--no-resume", "--", "true"])
        .finish();
    refused.assert_failed(125, "is paused");
    assert_eq!(store.exec(&id, "echo hello").stdout(), "hello\n");
    store.text(["touch", &id]);
    store.text(["delete", &id]);

    let id = store.create(["--ttl-seconds", "8"]);
    assert!(store.json(["status", &id])["expires_at"].is_string());
    assert_eq!(store.text(["reap-expired"]), "");
    assert!(store.keeper(&id).ends_within(ENOUGH));
    store.assert_empty();
}
