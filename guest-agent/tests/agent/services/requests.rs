//! Requests about services.

use vmcell_wire::{
    FailureKind, Request, Selector, Stage,
    limits::{MAX_LISTED, MAX_SERVICE_NAME},
    service::{ServiceRequest, StartService, WaitFor},
};

use super::helpers::{
    Config, Probe, ask, look, open_wait, outcome, refused, restart, start, stop, until_over,
    until_ready,
};
use crate::client::{Host, Reply, RunningAgent, Spec};

fn ignores_sigterm() -> Config {
    Config::new("trap '' TERM; echo up; while :; do sleep 0.01; done")
        .ready(Probe::Log("up".into()))
        .with(|c| c.stop.grace_ms = 500)
}

fn list(host: &mut Host, after: &str) -> (Vec<String>, bool) {
    let stream = host.open(&Request::Service(ServiceRequest::List { after }));
    let all = host.until(|reply| reply.closes(stream));
    let names = all.iter().filter_map(|reply| match reply {
        Reply::ListedService(id, serving) if *id == stream => Some(serving.name.clone()),
        _ => None,
    });
    let more = matches!(all.last(), Some(Reply::EndOfList(_, true)));
    (names.collect(), more)
}

#[test]
fn a_service_that_runs_is_started_again_only_if_that_changes_nothing() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::idle();
    let first = start(&mut host, "web", &service);
    // The same start is repeated because its answer was lost.
    assert_eq!(start(&mut host, "web", &service).pid, first.pid);
    let again = Config::idle();
    let (kind, text) = refused(&mut host, "web", &again);
    assert_eq!(kind, FailureKind::Conflict);
    assert!(text.contains("runs already"), "{text}");
    let same = Config::idle().with(|c| c.if_same = true);
    assert_eq!(start(&mut host, "web", &same).pid, first.pid);
    let other = Config::new("exec sleep 999").with(|c| c.if_same = true);
    let (kind, text) = refused(&mut host, "web", &other);
    assert_eq!(kind, FailureKind::Conflict);
    assert!(text.contains("another spec"), "{text}");
    // When it is stopped, all of them start it, except the one that did before.
    stop(&mut host, "web");
    assert_eq!(start(&mut host, "web", &service).phase, "Stopped");
    assert_eq!(start(&mut host, "web", &other).phase, "Running");
}

#[test]
fn everybody_who_stops_a_service_is_answered() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut other = agent.connect();
    start(&mut host, "web", &ignores_sigterm());
    until_ready(&mut host, "web");
    let request = Request::Service(ServiceRequest::Stop { name: "web" });
    let first = host.open(&request);
    let second = other.open(&request);
    let third = other.open(&request);
    assert_eq!(look(&mut host, "web").phase, "Stopping");
    let (kind, text) = refused(&mut host, "web", &Config::idle());
    assert_eq!(kind, FailureKind::Conflict);
    assert!(text.contains("being stopped"), "{text}");
    let removal = Request::Service(ServiceRequest::Remove { name: "web" });
    assert_eq!(
        host.refused(&removal),
        (FailureKind::Conflict, Stage::Service)
    );
    assert_eq!(outcome(&mut host, first).phase, "Stopped");
    assert_eq!(outcome(&mut other, second).phase, "Stopped");
    assert_eq!(outcome(&mut other, third).phase, "Stopped");
}

#[test]
fn stop_and_restart_at_once_are_both_answered_and_the_last_one_counts() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    start(&mut host, "web", &ignores_sigterm());
    until_ready(&mut host, "web");
    let stopping = host.open(&Request::Service(ServiceRequest::Stop { name: "web" }));
    let restarting = host.open(&Request::Service(ServiceRequest::Restart { name: "web" }));
    outcome(&mut host, stopping);
    assert_eq!(outcome(&mut host, restarting).phase, "Starting");
    until_ready(&mut host, "web");
    let restarting = host.open(&Request::Service(ServiceRequest::Restart { name: "web" }));
    let stopping = host.open(&Request::Service(ServiceRequest::Stop { name: "web" }));
    assert_eq!(outcome(&mut host, restarting).phase, "Stopped");
    assert_eq!(outcome(&mut host, stopping).phase, "Stopped");
    // A stopped service is started by it.
    assert_eq!(restart(&mut host, "web").phase, "Starting");
}

#[test]
fn any_number_of_hosts_wait_and_any_of_them_may_leave() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut other = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("ready");
    let service = Config::idle().ready(Probe::File(flag.display().to_string()));
    start(&mut host, "web", &service);
    let mine = open_wait(&mut host, "web", WaitFor::Ready);
    let cancelled = open_wait(&mut host, "web", WaitFor::Ended);
    let theirs = open_wait(&mut other, "web", WaitFor::Ready);
    let mut third = agent.connect();
    open_wait(&mut third, "web", WaitFor::Ready);
    third.close();
    host.cancel(cancelled);
    assert!(matches!(host.outcome(cancelled), Reply::Done(_)));
    let over = open_wait(&mut other, "web", WaitFor::Ended);
    std::fs::write(&flag, "").unwrap();
    assert_eq!(outcome(&mut host, mine).phase, "Ready");
    assert_eq!(outcome(&mut other, theirs).phase, "Ready");
    stop(&mut host, "web");
    assert_eq!(outcome(&mut other, over).phase, "Stopped");
    // A late waiter need not wait.
    assert_eq!(until_ready(&mut host, "web").phase, "Stopped");
}

#[test]
fn services_are_listed_by_name_a_part_at_a_time() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut names: Vec<String> = (0..MAX_LISTED + 5).map(|n| format!("s{n:03}")).collect();
    for name in names.iter().rev() {
        start(&mut host, name, &Config::new("exit 0"));
    }
    let rest = names.split_off(MAX_LISTED);
    assert_eq!(list(&mut host, ""), (names.clone(), true));
    assert_eq!(list(&mut host, names.last().unwrap()), (rest, false));
    assert_eq!(list(&mut host, "t"), (Vec::new(), false));
}

#[test]
fn there_is_room_for_so_many_services_and_no_more() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = || Config::new("").with(|c| c.program.argv = vec![b"true".to_vec()]);
    for number in 0..256 {
        start(&mut host, &format!("s{number}"), &service());
    }
    assert_eq!(refused(&mut host, "more", &service()).0, FailureKind::Limit);
    until_over(&mut host, "s17");
    ask(&mut host, ServiceRequest::Remove { name: "s17" });
    start(&mut host, "more", &service());
    // Nor do they replace each other, as ended processes do.
    assert_eq!(until_over(&mut host, "s0").phase, "Stopped");
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let file = || Probe::File("/x".into());
    let long = "x".repeat(MAX_SERVICE_NAME + 1);
    for name in ["", ".x", "-x", "a/b", "a b", "a:b", "ä", &long] {
        assert_eq!(
            refused(&mut host, name, &Config::idle()).0,
            FailureKind::Invalid,
            "{name}"
        );
    }
    let empty = |service: &mut Config| service.program.argv = Vec::new();
    for (service, words) in [
        (Config::idle().with(empty), "no program"),
        (Config::idle().ready(Probe::Tcp(0)), "port 0"),
        (
            Config::idle().ready(Probe::File("relative".into())),
            "absolute",
        ),
        (Config::idle().ready(Probe::Log("(".into())), "character 1"),
        (Config::idle().alive(Probe::Log("x".into())), "liveness"),
        (
            Config::idle().ready(file()).with(|c| c.interval_ms = 9),
            "10 ms",
        ),
        (
            Config::idle().ready(file()).with(|c| c.attempt_ms = 0),
            "attempt time",
        ),
        (
            Config::idle().ready(file()).with(|c| c.ready_ms = 0),
            "time to get ready",
        ),
        (
            Config::idle().alive(file()).with(|c| c.failures = 0),
            "one failure",
        ),
        (Config::idle().with(|c| c.stop.signal = 0), "signal"),
        (Config::idle().with(|c| c.stop.signal = 65), "signal"),
        (
            Config::idle().with(|c| c.restart.pause_ms = 161),
            "longest pause",
        ),
        (Config::idle().needs(&["a/b"]), "name"),
        (Config::idle().needs(&["a"; 65]), "64"),
    ] {
        let (kind, text) = refused(&mut host, "web", &service);
        assert!(matches!(kind, FailureKind::Invalid | FailureKind::Limit));
        assert!(text.contains(words), "{text} instead of {words}");
    }
    assert_eq!(list(&mut host, ""), (Vec::new(), false));
}

#[test]
fn garbage_instead_of_a_spec_does_no_harm() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let probe = Probe::Http {
        port: 80,
        path: "/".into(),
        body: "x".into(),
    };
    let harmless = |service: &mut Config| service.program.argv = vec![b"true".to_vec()];
    let good = Config::idle().ready(probe).with(harmless);
    let good = good.needs(&["nobody"]).spec();
    let mut ticket = 0;
    let mut start = |spec: &[u8]| {
        ticket += 1;
        let stream = host.open(&Request::Service(ServiceRequest::Start(StartService {
            name: "web",
            ticket,
            if_same: false,
            spec,
        })));
        let outcome = host.outcome(stream);
        assert!(matches!(outcome, Reply::Failed(..) | Reply::Service(..)));
    };
    start(&[]);
    start(&[0xff; 1000]);
    for cut in 0..good.len() {
        start(&good[..cut]);
    }
    for place in 0..good.len() {
        let mut spec = good.clone();
        for bit in 0..8 {
            spec[place] ^= 1 << bit;
            start(&spec);
        }
    }
    assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
}

#[test]
fn a_name_that_nobody_has_is_not_found() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let name = "nobody";
    let logs = vmcell_wire::service::ReadLog {
        name,
        from: super::helpers::ALL,
        follow: true,
        window: 1,
    };
    let until = WaitFor::Ready;
    for request in [
        ServiceRequest::Wait { name, until },
        ServiceRequest::GetState { name },
        ServiceRequest::Stop { name },
        ServiceRequest::Restart { name },
        ServiceRequest::Remove { name },
        ServiceRequest::ReadLog(logs),
    ] {
        let refused = host.refused(&Request::Service(request));
        assert_eq!(refused, (FailureKind::NotFound, Stage::Service));
    }
}

#[test]
fn the_process_of_a_service_is_known_and_cannot_be_forgotten() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    start(&mut host, "web", &ignores_sigterm());
    until_ready(&mut host, "web");
    let process = Selector::Tag("service:web");
    let forget = Request::Forget { process };
    assert_eq!(
        host.refused(&forget),
        (FailureKind::Conflict, Stage::Process)
    );
    // No other process can have such a tag.
    let impostor = Spec::shell("true").with(|spec| spec.tag = "service:db".into());
    assert_eq!(
        host.start_refused(&impostor),
        (FailureKind::Invalid, Stage::Request)
    );
    // The process itself handles a signal.
    let signalled = host.ask(&Request::Signal { process, signal: 9 });
    assert!(matches!(signalled, Reply::Done(_)));
    assert_eq!(until_over(&mut host, "web").phase, "Failed(Exited)");
}

#[test]
fn a_power_off_ends_services_and_starts_none() {
    let mut agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::idle()
        .policy(vmcell_wire::service::RestartPolicy::Always)
        .alive(Probe::Command("true".into()));
    start(&mut host, "web", &service);
    start(
        &mut host,
        "api",
        &Config::idle().ready(Probe::File("/no/such".into())),
    );
    start(&mut host, "late", &Config::idle().needs(&["api"]));
    host.open(&Request::PowerOff { grace_ms: 10_000 });
    host.until(|reply| *reply == Reply::PoweringOff);
    assert!(agent.child.wait().unwrap().success());
}
