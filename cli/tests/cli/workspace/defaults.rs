//! What a workspace has if nobody says otherwise, and what all its commands have.

use serde_json::{Value, json};

use super::{ENOUGH, Store};
use crate::{shared_vm::unique, vmcell::Vmcell};

#[test]
fn without_options_there_are_one_processor_and_1024_mib_and_no_limits() {
    let store = Store::new();
    let created = store.json(["create"]);
    let id = created["workspace_id"].as_str().unwrap();
    let letters = id.strip_prefix("ws-").unwrap();
    assert_eq!(letters.len(), 12, "{id}");
    for (field, expected) in [
        ("name", Value::Null),
        ("labels", json!({})),
        ("environment", "base".into()),
        ("vcpu_count", 1.into()),
        ("mem_mib", 1024.into()),
        ("disk_mib", Value::Null),
        ("network_policy", "off".into()),
        ("quotas", json!({})),
        ("idle_seconds", 0.into()),
        ("expires_at", Value::Null),
        ("reset_count", 0.into()),
        ("last_reset_at", Value::Null),
    ] {
        assert_eq!(created[field], expected, "{field}: {created}");
    }
    let line = "nproc; id -u; awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo";
    let ended = store.exec(id, line);
    let lines: Vec<u32> = ended
        .stdout()
        .lines()
        .map(|it| it.parse().unwrap())
        .collect();
    assert_eq!(lines[..2], [1, 0]);
    assert!((800..=1024).contains(&lines[2]), "{ended:?}");
    store.delete(id);
    store.assert_empty();

    let vm = |words: &[&str]| {
        let words = ["vm"].iter().chain(words).copied();
        Vmcell::new(words).env("XDG_STATE_HOME", store.state.path())
    };
    let created = vm(&["create", "--json"]).finish().json();
    assert_eq!(
        (&created["vcpu_count"], &created["mem_mib"]),
        (&1.into(), &1024.into())
    );
    let id = created["vm_id"].as_str().unwrap();
    let deleted = vm(&["delete", id]).finish();
    deleted.assert_printed(&format!("{id} is deleted\n"));
}

#[test]
fn the_user_and_the_variables_are_there_again_after_a_pause_a_stop_and_a_reset() {
    let store = Store::new();
    let id = &*unique("defaults");
    let options = ["--id", id, "--user", "1000:100", "--disk-mib", "3000"];
    let variables = ["--env", "A=1", "--env", "B=two words"];
    let created = store.create(options.into_iter().chain(variables));
    assert_eq!(created, id);
    assert_eq!(store.json(["status", id])["disk_mib"], 3000);
    let assert_defaults = || {
        let line = "id -u; id -g; echo \"$A $B\"; pwd; df -m / | awk 'END { print ($2 > 2500) }'";
        let ended = store.exec(id, line);
        ended.assert_printed("1000\n100\n1 two words\n/workspace\n1\n");
    };
    assert_defaults();
    for (end, begin) in [("pause", "resume"), ("stop", "start")] {
        let keeper = store.keeper(id);
        store.text([end, id]);
        assert!(keeper.ends_within(ENOUGH), "{end}");
        store.text([begin, id]);
        assert_defaults();
    }
    store.text(["reset", id]);
    assert_defaults();
    // A paused one that is resumed by its next command.
    store.text(["pause", id]);
    assert_defaults();
    store.delete(id);
    store.assert_empty();
}
