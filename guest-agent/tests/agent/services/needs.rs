//! Services that need each other.

use vmcell_wire::{
    FailureKind,
    service::{RestartPolicy, ServiceRequest, WaitFor},
};

use super::helpers::{
    Config, Probe, ask, kill, look, open_wait, outcome, refused, restart, start, stop, until_over,
    until_ready,
};
use crate::client::RunningAgent;

/// Returns a service that is ready when its gate file exists.
fn gated(dir: &tempfile::TempDir, name: &str) -> Config {
    Config::idle().ready(Probe::File(gate(dir, name)))
}

fn gate(dir: &tempfile::TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

fn open_gate(dir: &tempfile::TempDir, name: &str) {
    std::fs::write(gate(dir, name), "").unwrap();
}

#[test]
fn a_chain_starts_one_after_another() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    start(&mut host, "db", &gated(&dir, "db"));
    let api = start(&mut host, "api", &gated(&dir, "api").needs(&["db"]));
    assert_eq!((api.phase.as_str(), api.pid), ("Waiting(\"db\")", None));
    let web = start(&mut host, "web", &Config::idle().needs(&["api"]));
    assert_eq!(web.phase, "Waiting(\"api\")");
    open_gate(&dir, "db");
    until_ready(&mut host, "db");
    assert_eq!(look(&mut host, "api").phase, "Starting");
    assert_eq!(look(&mut host, "web").phase, "Waiting(\"api\")");
    open_gate(&dir, "api");
    assert_eq!(until_ready(&mut host, "web").phase, "Running");
    assert_eq!(look(&mut host, "api").phase, "Ready");
}

#[test]
fn a_diamond_waits_for_both_sides() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    start(&mut host, "base", &Config::idle());
    for side in ["left", "right"] {
        start(&mut host, side, &gated(&dir, side).needs(&["base"]));
    }
    let top = start(
        &mut host,
        "top",
        &Config::idle().needs(&["left", "right", "base"]),
    );
    assert_eq!(top.phase, "Waiting(\"left\")");
    let ready = open_wait(&mut host, "top", WaitFor::Ready);
    open_gate(&dir, "left");
    until_ready(&mut host, "left");
    assert_eq!(look(&mut host, "top").phase, "Waiting(\"right\")");
    open_gate(&dir, "right");
    assert_eq!(outcome(&mut host, ready).phase, "Running");
}

#[test]
fn a_need_that_fails_or_is_stopped_fails_who_needs_it() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    start(&mut host, "db", &gated(&dir, "never"));
    start(&mut host, "api", &Config::idle().needs(&["db"]));
    start(&mut host, "web", &Config::idle().needs(&["api"]));
    kill(&mut host, "db");
    assert_eq!(until_over(&mut host, "db").phase, "Failed(Exited)");
    assert_eq!(
        until_over(&mut host, "api").phase,
        "Failed(DependencyFailed(\"db\"))"
    );
    assert_eq!(
        until_over(&mut host, "web").phase,
        "Failed(DependencyFailed(\"api\"))"
    );
    // One that is stopped from the beginning does so at once.
    let late = start(&mut host, "late", &Config::idle().needs(&["db"]));
    assert_eq!(late.phase, "Failed(DependencyFailed(\"db\"))");
    // One that runs already keeps running.
    start(&mut host, "db", &Config::idle());
    assert_eq!(restart(&mut host, "late").phase, "Running");
    stop(&mut host, "db");
    assert_eq!(look(&mut host, "late").phase, "Running");
}

#[test]
fn a_need_that_is_being_restarted_is_waited_for() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let db = gated(&dir, "db").policy(RestartPolicy::Always);
    open_gate(&dir, "db");
    start(&mut host, "db", &db);
    until_ready(&mut host, "db");
    std::fs::remove_file(gate(&dir, "db")).unwrap();
    kill(&mut host, "db");
    let web = start(&mut host, "web", &Config::idle().needs(&["db"]));
    assert_eq!(web.phase, "Waiting(\"db\")");
    open_gate(&dir, "db");
    assert_eq!(until_ready(&mut host, "web").phase, "Running");
    assert!(look(&mut host, "db").restarts >= 1);
}

#[test]
fn a_cycle_and_an_unknown_need_are_refused_by_name() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (kind, text) = refused(&mut host, "web", &Config::idle().needs(&["web"]));
    assert_eq!(kind, FailureKind::Invalid);
    assert!(text.contains("web -> web"), "{text}");
    let (kind, text) = refused(&mut host, "web", &Config::idle().needs(&["db"]));
    assert_eq!(kind, FailureKind::NotFound);
    assert!(text.contains("db"), "{text}");
    start(&mut host, "web", &Config::idle());
    start(&mut host, "api", &Config::idle().needs(&["web"]));
    start(&mut host, "db", &Config::idle().needs(&["api"]));
    stop(&mut host, "web");
    let (kind, text) = refused(&mut host, "web", &Config::idle().needs(&["db"]));
    assert_eq!(kind, FailureKind::Invalid);
    assert!(text.contains("web -> db -> api -> web"), "{text}");
    // It is unchanged.
    assert_eq!(restart(&mut host, "web").phase, "Running");
}

#[test]
fn who_waits_is_stopped_at_once_and_fails_if_it_cannot_be_started_later() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    start(&mut host, "db", &gated(&dir, "db"));
    start(&mut host, "web", &Config::idle().needs(&["db"]));
    let stopped = stop(&mut host, "web");
    assert_eq!(
        (stopped.phase.as_str(), stopped.last_exit),
        ("Stopped", None)
    );
    ask(&mut host, ServiceRequest::Remove { name: "web" });
    let absent = Config::idle()
        .needs(&["db"])
        .with(|c| c.program.argv = vec![b"/no/such/program".to_vec()]);
    assert_eq!(start(&mut host, "absent", &absent).phase, "Waiting(\"db\")");
    open_gate(&dir, "db");
    let over = until_over(&mut host, "absent");
    assert!(
        over.phase.starts_with("Failed(NotStarted("),
        "{}",
        over.phase
    );
    assert!(over.phase.contains("NotFound"), "{}", over.phase);
}

#[test]
fn the_time_to_get_ready_counts_from_the_start_of_the_program() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    start(
        &mut host,
        "slow",
        &Config::idle().ready(Probe::Command("sleep 2".into())),
    );
    let service = gated(&dir, "web")
        .needs(&["slow"])
        .with(|c| c.ready_ms = 1900);
    start(&mut host, "web", &service);
    until_ready(&mut host, "slow");
    assert_eq!(look(&mut host, "web").phase, "Starting");
    open_gate(&dir, "web");
    assert_eq!(until_ready(&mut host, "web").phase, "Ready");
}
