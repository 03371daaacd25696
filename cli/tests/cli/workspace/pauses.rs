//! Workspaces that are paused by themselves.

use std::time::{Duration, Instant};

use super::{ENOUGH, Store};

/// How long they may be unused.
const IDLE: &str = "4";

#[test]
fn each_use_and_a_resume_begin_the_idle_time_again() {
    let store = Store::new();
    let id = store.create(["--idle-seconds", IDLE]);
    let state = || store.json(["status", &id])["state"].clone();
    let row = || store.json(["list"])["workspaces"][0].clone();
    let began = Instant::now();
    // Longer than it may be unused.
    while began.elapsed() < Duration::from_secs(5) {
        store.text(["touch", &id]);
    }
    assert_eq!(state(), "running");
    assert_eq!(row()["idle_seconds"], 4);

    assert!(store.keeper(&id).ends_within(ENOUGH));
    assert_eq!(state(), "paused");
    let resumed = store.json(["resume", &id]);
    assert_eq!(resumed["idle_seconds"], 4);
    assert_eq!(resumed["state"], "running");
    assert_eq!(resumed["paused_automatically"], false);
    // And again, without another use.
    assert!(store.keeper(&id).ends_within(ENOUGH));
    let paused = row();
    assert_eq!(paused["state"], "paused", "{paused}");
    assert_eq!(paused["paused_automatically"], true);
    assert_eq!(paused["newly_paused"], true);
    let told = row();
    assert_eq!(told["paused_automatically"], true);
    assert_eq!(told["newly_paused"], false);

    // Nobody has to be told of what somebody has done.
    store.text(["resume", &id]);
    store.text(["pause", &id]);
    let paused = row();
    assert_eq!(paused["state"], "paused", "{paused}");
    assert_eq!(paused["paused_automatically"], false);
    assert_eq!(paused["newly_paused"], false);
    store.text(["delete", &id]);
    store.assert_empty();
}
