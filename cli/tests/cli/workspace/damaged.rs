//! Workspaces whose files cannot be used.

use std::fs;

use super::Store;

#[test]
fn one_that_is_damaged_is_named_and_can_be_deleted() {
    let store = Store::new();
    let id = store.create([]);
    store.text(["stop", &id]);
    let fork = store.text(["fork", &id, "--id-only"]);
    let fork = fork.trim_end();
    let record = format!("vmcell/workspaces/{fork}/workspace.json");
    fs::write(store.state.path().join(record), "{").unwrap();

    let ended = store.cli(["list"]).finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stdout().contains(&id), "{ended:?}");
    assert!(!ended.stdout().contains(fork), "{ended:?}");
    let remedy = format!("`vmcell workspace delete {fork}` deletes it");
    assert!(ended.stderr.contains(&remedy), "{ended:?}");
    assert!(ended.stderr.contains("workspace.json"), "{ended:?}");
    let ended = store.cli(["start", fork]).finish();
    ended.assert_failed(125, "workspace.json: is not a workspace");
    store.text(["delete", fork]);
    assert!(store.text(["list"]).contains(&id));
    store.text(["delete", &id]);
    store.assert_empty();
}
