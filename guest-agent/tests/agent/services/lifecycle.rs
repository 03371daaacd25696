//! Starting, stopping and restarting services.

use vmcell_wire::{
    ExitCause, FailureKind, Request,
    service::{RestartPolicy, ServiceRequest, WaitFor},
};

use super::helpers::{
    ALL, Config, ask, kill, log, look, open_log, open_wait, outcome, refused, restart, start, stop,
    text, until_over, until_printed,
};
use crate::client::{Reply, RunningAgent, wait_until_gone};

#[test]
fn a_service_without_a_probe_runs_at_once_and_stops_when_asked() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let started = start(&mut host, "web", &Config::new("echo up; exec sleep 1000"));
    assert_eq!(
        (started.name.as_str(), started.phase.as_str()),
        ("web", "Running")
    );
    assert_eq!((started.restarts, started.last_exit), (0, None));
    let pid = started.pid.unwrap();
    let (processes, _) = host.list(0);
    assert_eq!(processes[0].tag, "service:web");
    let stream = open_log(&mut host, "web", ALL, true);
    until_printed(&mut host, stream, "up\n", 1);
    let stopped = stop(&mut host, "web");
    assert_eq!((stopped.phase.as_str(), stopped.pid), ("Stopped", None));
    assert_eq!(stopped.last_exit.unwrap().cause, ExitCause::Signal(15));
    wait_until_gone(pid);
    assert_eq!(host.list(0).0, []);
    assert_eq!(log(&mut host, "web", ALL), "up\n");
    assert_eq!(stop(&mut host, "web").phase, "Stopped");
    let removed = ask(&mut host, ServiceRequest::Remove { name: "web" });
    assert!(matches!(removed, Reply::Done(_)));
    let gone = host.refused(&Request::Service(ServiceRequest::GetState { name: "web" }));
    assert_eq!(gone.0, FailureKind::NotFound);
}

#[test]
fn how_a_run_ends_decides_what_follows() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    for (script, policy, phase) in [
        ("exit 0", RestartPolicy::Never, "Stopped"),
        ("exit 0", RestartPolicy::OnFailure, "Stopped"),
        ("exit 3", RestartPolicy::Never, "Failed(Exited)"),
        ("kill -9 $$", RestartPolicy::Never, "Failed(Exited)"),
    ] {
        let name = "service";
        start(&mut host, name, &Config::new(script).policy(policy));
        let over = until_over(&mut host, name);
        assert_eq!(over.phase, phase, "{script} {policy:?}");
        assert!(over.last_exit.is_some());
        assert_eq!(over.restarts, 0);
    }
}

#[test]
fn a_service_that_fails_is_started_again_and_its_log_goes_on() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("stop").display().to_string();
    let script = format!("echo run; test -e {flag} && exit 0; exit 5");
    start(
        &mut host,
        "web",
        &Config::new(&script).policy(RestartPolicy::OnFailure),
    );
    let stream = open_log(&mut host, "web", ALL, true);
    until_printed(&mut host, stream, "run\n", 4);
    std::fs::write(&flag, "").unwrap();
    let over = outcome(&mut host, stream);
    assert_eq!(over.phase, "Stopped");
    assert_eq!(over.last_exit.unwrap().cause, ExitCause::Code(0));
    let runs = text(&host, stream).matches("run\n").count();
    assert_eq!(usize::try_from(over.restarts).unwrap() + 1, runs);
    assert_eq!(text(&host, stream), "run\n".repeat(runs));
}

#[test]
fn the_process_of_a_service_may_be_killed_by_anybody() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::idle().policy(RestartPolicy::OnFailure);
    let first = start(&mut host, "web", &service);
    let over = open_wait(&mut host, "web", WaitFor::Ended);
    assert!(matches!(kill(&mut host, "web"), Reply::Exited(..)));
    let second = loop {
        let seen = look(&mut host, "web");
        if seen.phase == "Running" {
            break seen;
        }
        assert_eq!(seen.phase, "Restarting");
    };
    assert_ne!(first.pid, second.pid);
    assert_eq!(second.restarts, 1);
    assert_eq!(second.last_exit.unwrap().cause, ExitCause::Killed);
    stop(&mut host, "web");
    assert_eq!(outcome(&mut host, over).phase, "Stopped");
}

#[test]
fn a_program_that_cannot_be_executed_leaves_no_service() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::idle().with(|c| c.program.argv = vec![b"/no/such/program".to_vec()]);
    assert_eq!(refused(&mut host, "web", &service).0, FailureKind::NotFound);
    let gone = host.refused(&Request::Service(ServiceRequest::GetState { name: "web" }));
    assert_eq!(gone.0, FailureKind::NotFound);
    // A stopped service stays as it was.
    start(&mut host, "web", &Config::new("echo first"));
    let before = until_over(&mut host, "web");
    assert_eq!(refused(&mut host, "web", &service).0, FailureKind::NotFound);
    let after = look(&mut host, "web");
    assert_eq!((after.phase, after.log), (before.phase, before.log));
    assert_eq!(after.last_exit, before.last_exit);
    assert_eq!(restart(&mut host, "web").restarts, 0);
    until_over(&mut host, "web");
    assert_eq!(log(&mut host, "web", ALL), "first\nfirst\n");
}
