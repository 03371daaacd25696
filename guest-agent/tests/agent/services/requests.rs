//! What may be asked for, when, and by whom.

use vmcell_wire::{
    FailureKind, Request, Selector, Stage,
    limits::{MAX_LISTED, MAX_SERVICE_NAME},
    service::{Service, StartService, Until},
};

use super::staff::{
    Ask, Job, ask, look, open_wait, outcome, refused, restart, start, stop, until_over, until_ready,
};
use crate::client::{Host, RunningAgent, Said, Spec};

fn stubborn() -> Job {
    Job::new("trap '' TERM; echo up; while :; do sleep 0.01; done")
        .ready(Ask::Log("up".into()))
        .with(|job| job.stop.grace_ms = 500)
}

fn list(host: &mut Host, after: &str) -> (Vec<String>, bool) {
    let stream = host.open(&Request::Service(Service::List { after }));
    let all = host.until(|said| said.closes(stream));
    let names = all.iter().filter_map(|said| match said {
        Said::ListedService(id, serving) if *id == stream => Some(serving.name.clone()),
        _ => None,
    });
    let more = matches!(all.last(), Some(Said::EndOfList(_, true)));
    (names.collect(), more)
}

#[test]
fn a_service_that_runs_is_started_again_only_if_that_changes_nothing() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let job = Job::idle();
    let first = start(&mut host, "web", &job);
    // The same start again: its answer was lost.
    assert_eq!(start(&mut host, "web", &job).pid, first.pid);
    let again = Job::idle();
    let (kind, text) = refused(&mut host, "web", &again);
    assert_eq!(kind, FailureKind::Conflict);
    assert!(text.contains("runs already"), "{text}");
    let same = Job::idle().with(|job| job.if_same = true);
    assert_eq!(start(&mut host, "web", &same).pid, first.pid);
    let other = Job::new("exec sleep 999").with(|job| job.if_same = true);
    let (kind, text) = refused(&mut host, "web", &other);
    assert_eq!(kind, FailureKind::Conflict);
    assert!(text.contains("another spec"), "{text}");
    // When it is over, all of them start it, but for the one that did.
    stop(&mut host, "web");
    assert_eq!(start(&mut host, "web", &job).phase, "Stopped");
    assert_eq!(start(&mut host, "web", &other).phase, "Running");
}

#[test]
fn everybody_who_stops_a_service_is_answered() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut other = agent.connect();
    start(&mut host, "web", &stubborn());
    until_ready(&mut host, "web");
    let request = Request::Service(Service::Stop { name: "web" });
    let first = host.open(&request);
    let second = other.open(&request);
    let third = other.open(&request);
    assert_eq!(look(&mut host, "web").phase, "Stopping");
    let (kind, text) = refused(&mut host, "web", &Job::idle());
    assert_eq!(kind, FailureKind::Conflict);
    assert!(text.contains("being stopped"), "{text}");
    let removal = Request::Service(Service::Remove { name: "web" });
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
    start(&mut host, "web", &stubborn());
    until_ready(&mut host, "web");
    let stopping = host.open(&Request::Service(Service::Stop { name: "web" }));
    let restarting = host.open(&Request::Service(Service::Restart { name: "web" }));
    outcome(&mut host, stopping);
    assert_eq!(outcome(&mut host, restarting).phase, "Starting");
    until_ready(&mut host, "web");
    let restarting = host.open(&Request::Service(Service::Restart { name: "web" }));
    let stopping = host.open(&Request::Service(Service::Stop { name: "web" }));
    assert_eq!(outcome(&mut host, restarting).phase, "Stopped");
    assert_eq!(outcome(&mut host, stopping).phase, "Stopped");
    // One that is over is started by it.
    assert_eq!(restart(&mut host, "web").phase, "Starting");
}

#[test]
fn any_number_of_hosts_wait_and_any_of_them_may_leave() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut other = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("ready");
    let job = Job::idle().ready(Ask::File(flag.display().to_string()));
    start(&mut host, "web", &job);
    let mine = open_wait(&mut host, "web", Until::Ready);
    let cancelled = open_wait(&mut host, "web", Until::Over);
    let theirs = open_wait(&mut other, "web", Until::Ready);
    let mut third = agent.connect();
    open_wait(&mut third, "web", Until::Ready);
    third.close();
    host.cancel(cancelled);
    assert!(matches!(host.outcome(cancelled), Said::Done(_)));
    let over = open_wait(&mut other, "web", Until::Over);
    std::fs::write(&flag, "").unwrap();
    assert_eq!(outcome(&mut host, mine).phase, "Ready");
    assert_eq!(outcome(&mut other, theirs).phase, "Ready");
    stop(&mut host, "web");
    assert_eq!(outcome(&mut other, over).phase, "Stopped");
    // Who comes late need not wait.
    assert_eq!(until_ready(&mut host, "web").phase, "Stopped");
}

#[test]
fn services_are_listed_by_name_a_part_at_a_time() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let mut names: Vec<String> = (0..MAX_LISTED + 5).map(|n| format!("s{n:03}")).collect();
    for name in names.iter().rev() {
        start(&mut host, name, &Job::new("exit 0"));
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
    let job = || Job::new("").with(|job| job.program.argv = vec![b"true".to_vec()]);
    for number in 0..256 {
        start(&mut host, &format!("s{number}"), &job());
    }
    assert_eq!(refused(&mut host, "more", &job()).0, FailureKind::Limit);
    until_over(&mut host, "s17");
    ask(&mut host, Service::Remove { name: "s17" });
    start(&mut host, "more", &job());
    // Nor do they push each other out, as ended processes do.
    assert_eq!(until_over(&mut host, "s0").phase, "Stopped");
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let file = || Ask::File("/x".into());
    let long = "x".repeat(MAX_SERVICE_NAME + 1);
    for name in ["", ".x", "-x", "a/b", "a b", "a:b", "ä", &long] {
        assert_eq!(
            refused(&mut host, name, &Job::idle()).0,
            FailureKind::Invalid,
            "{name}"
        );
    }
    let empty = |job: &mut Job| job.program.argv = Vec::new();
    for (job, words) in [
        (Job::idle().with(empty), "no program"),
        (Job::idle().ready(Ask::Tcp(0)), "port 0"),
        (Job::idle().ready(Ask::File("relative".into())), "absolute"),
        (Job::idle().ready(Ask::Log("(".into())), "character 1"),
        (Job::idle().alive(Ask::Log("x".into())), "liveness"),
        (
            Job::idle().ready(file()).with(|job| job.interval_ms = 9),
            "10 ms",
        ),
        (
            Job::idle().ready(file()).with(|job| job.attempt_ms = 0),
            "attempt time",
        ),
        (
            Job::idle().ready(file()).with(|job| job.ready_ms = 0),
            "time to get ready",
        ),
        (
            Job::idle().alive(file()).with(|job| job.failures = 0),
            "one failure",
        ),
        (Job::idle().with(|job| job.stop.signal = 0), "signal"),
        (Job::idle().with(|job| job.stop.signal = 65), "signal"),
        (
            Job::idle().with(|job| job.restart.pause_ms = 161),
            "longest pause",
        ),
        (Job::idle().needs(&["a/b"]), "name"),
        (Job::idle().needs(&["a"; 65]), "64"),
    ] {
        let (kind, text) = refused(&mut host, "web", &job);
        assert!(matches!(kind, FailureKind::Invalid | FailureKind::Limit));
        assert!(text.contains(words), "{text} instead of {words}");
    }
    assert_eq!(list(&mut host, ""), (Vec::new(), false));
}

#[test]
fn garbage_instead_of_a_spec_does_no_harm() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let ask = Ask::Http {
        port: 80,
        path: "/".into(),
        body: "x".into(),
    };
    let harmless = |job: &mut Job| job.program.argv = vec![b"true".to_vec()];
    let good = Job::idle().ready(ask).with(harmless);
    let good = good.needs(&["nobody"]).spec();
    let mut ticket = 0;
    let mut start = |spec: &[u8]| {
        ticket += 1;
        let stream = host.open(&Request::Service(Service::Start(StartService {
            name: "web",
            ticket,
            if_same: false,
            spec,
        })));
        let outcome = host.outcome(stream);
        assert!(matches!(outcome, Said::Failed(..) | Said::Service(..)));
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
    assert!(matches!(host.ask(&Request::Ping), Said::Pong(_)));
}

#[test]
fn a_name_that_nobody_has_is_not_found() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let name = "nobody";
    let logs = vmcell_wire::service::Logs {
        name,
        from: super::staff::ALL,
        follow: true,
        window: 1,
    };
    let until = Until::Ready;
    for request in [
        Service::Wait { name, until },
        Service::Look { name },
        Service::Stop { name },
        Service::Restart { name },
        Service::Remove { name },
        Service::Logs(logs),
    ] {
        let refused = host.refused(&Request::Service(request));
        assert_eq!(refused, (FailureKind::NotFound, Stage::Service));
    }
}

#[test]
fn the_process_of_a_service_is_known_and_cannot_be_forgotten() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    start(&mut host, "web", &stubborn());
    until_ready(&mut host, "web");
    let process = Selector::Tag("service:web");
    let forget = Request::Forget { process };
    assert_eq!(
        host.refused(&forget),
        (FailureKind::Conflict, Stage::Process)
    );
    // Nobody else can have such a tag.
    let impostor = Spec::shell("true").with(|spec| spec.tag = "service:db".into());
    assert_eq!(
        host.start_refused(&impostor),
        (FailureKind::Invalid, Stage::Request)
    );
    // A signal is the process's own affair.
    let signalled = host.ask(&Request::Signal { process, signal: 9 });
    assert!(matches!(signalled, Said::Done(_)));
    assert_eq!(until_over(&mut host, "web").phase, "Failed(Died)");
}

#[test]
fn a_power_off_ends_services_and_starts_none() {
    let mut agent = RunningAgent::start();
    let mut host = agent.connect();
    let job = Job::idle()
        .policy(vmcell_wire::service::RestartPolicy::Always)
        .alive(Ask::Command("true".into()));
    start(&mut host, "web", &job);
    start(
        &mut host,
        "api",
        &Job::idle().ready(Ask::File("/no/such".into())),
    );
    start(&mut host, "late", &Job::idle().needs(&["api"]));
    host.open(&Request::PowerOff { grace_ms: 10_000 });
    host.until(|said| *said == Said::PoweringOff);
    assert!(agent.child.wait().unwrap().success());
}
