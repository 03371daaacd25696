//! What is told about workspaces, and what their names and labels change.

use serde_json::{Value, json};

use super::Store;

/// What each row of a list has.
const FIELDS: [&str; 11] = [
    "workspace_id",
    "name",
    "labels",
    "environment",
    "state",
    "created_at",
    "last_activity_at",
    "expires_at",
    "command_count",
    "service_count",
    "running_service_count",
];

/// What the results of commands have beyond.
const MORE_FIELDS: [&str; 4] = [
    "network_policy",
    "workspace_seed",
    "reset_count",
    "last_reset_at",
];

fn assert_has<'a>(object: &Value, fields: impl IntoIterator<Item = &'a str>) {
    for field in fields {
        assert!(object.get(field).is_some(), "{field}: {object}");
    }
}

#[test]
fn the_workspace_that_was_used_last_is_listed_first_and_rows_have_all_fields() {
    let store = Store::new();
    let first = store.create(["--name", "first", "--label", "team=a"]);
    let fork = ["fork", "first", "--name", "second", "--id-only"];
    let second = store.text(fork);
    let second = second.trim_end();
    let rows = || store.json(["list"])["workspaces"].clone();
    let assert_order = |expected: [&str; 2]| {
        let rows = rows();
        let ids = rows.as_array().unwrap().iter();
        let ids: Vec<_> = ids
            .map(|row| row["workspace_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected);
        let activity = |row: usize| rows[row]["last_activity_at"].as_str().unwrap().to_owned();
        assert!(activity(0) > activity(1), "{rows}");
    };
    assert_order([second, &first]);
    store.exec("first", "true").assert_printed("");
    assert_order([&first, second]);
    store.text(["touch", "second"]);
    assert_order([second, &first]);
    let write = ["file", "write", "first", "file", "--text", "x"];
    store.text(write);
    assert_order([&first, second]);
    // Whoever looks does not use it.
    store.json(["status", "second"]);
    store.json(["logs", "second"]);
    assert_order([&first, second]);

    let rows = rows();
    for row in rows.as_array().unwrap() {
        assert_has(row, FIELDS);
        assert_eq!(row["environment"], "base");
        assert_eq!(row["labels"], json!({ "team": "a" }));
        assert!(row["last_activity_at"].as_str() > row["created_at"].as_str());
        assert_eq!(row["expires_at"], Value::Null);
        assert_eq!(row["service_count"], 0);
        assert_eq!(row["running_service_count"], 0);
    }
    for (row, expected) in [
        (&rows[0], ["first", "running", "1"]),
        (&rows[1], ["second", "stopped", "0"]),
    ] {
        assert_eq!(
            [&row["name"], &row["state"]],
            [expected[0], expected[1]],
            "{row}"
        );
        assert_eq!(row["command_count"].to_string(), expected[2]);
    }
    let text = store.text(["list"]);
    let ids = text.lines().skip(1).map(|line| line.split(' ').next());
    assert_eq!(ids.collect::<Vec<_>>(), [Some(&*first), Some(second)]);
    store.text(["delete", "second"]);
    store.delete(&first);
    store.assert_empty();
}

#[test]
fn a_name_and_labels_change_nothing_else_and_all_results_have_the_same_fields() {
    let store = Store::new();
    let create = ["create", "--mem-mib", "128", "--name", "one"];
    let created = store.json(create.into_iter().chain(["--ttl-seconds", "1000"]));
    let id = created["workspace_id"].as_str().unwrap().to_owned();
    let fields = FIELDS.into_iter().chain(MORE_FIELDS);
    assert_has(&created, fields.clone());
    let before = store.json(["status", "one"]);
    assert_eq!(before, created);
    assert!(before["expires_at"].as_str() > before["created_at"].as_str());

    let update = ["update", "one", "--name", "two", "--label", "team=a"];
    let updated = store.json(update);
    let mut expected = before.clone();
    expected["name"] = "two".into();
    expected["labels"] = json!({ "team": "a" });
    assert_eq!(updated, expected);
    assert_eq!(store.json(["status", "two"]), expected);
    let cleared = store.json(["update", &id, "--clear-name", "--clear-labels"]);
    expected["name"] = Value::Null;
    expected["labels"] = json!({});
    assert_eq!(cleared, expected);

    let reset = store.json(["reset", &id]);
    assert_has(&reset, fields);
    assert_eq!(reset["workspace_id"], *id);
    store.delete(&id);
    store.assert_empty();
}
