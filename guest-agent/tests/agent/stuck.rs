//! Children that hang before they have executed their program, because of
//! another process of the guest. Nothing else may wait for them.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use vmcell_wire::{Channel, ExitCause, Request, Selector, StreamId, encode};

use crate::{
    client::{Host, Reply, RunningAgent, Spec, code},
    lease::LeasedScript,
};

/// Far longer than it takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Returns whether the start of a stream's process was reported.
fn has_started(host: &Host, stream: StreamId) -> bool {
    host.any_reply(|reply| matches!(reply, Reply::Started(id, ..) if *id == stream))
}

fn assert_responsive(host: &mut Host) {
    assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
}

#[test]
fn a_lease_on_a_program_holds_up_nobody_but_its_process() {
    let Some(mut leased) = LeasedScript::new("echo ran \"$@\"") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&[&leased.path(), "an argument"]);
    let stuck = host.start(&spec);
    let background = host.start(&Spec::new(&[&leased.path()]).background());
    // Meanwhile everything else works.
    assert_responsive(&mut host);
    assert_eq!(code(&host.run(&Spec::shell("exit 7")).0), 7);
    let (listed, _) = host.list(0);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!((&listed[0].tag, listed[0].exit), (&spec.tag, None));
    assert!(!has_started(&host, stuck));
    // It continues when it can.
    leased.release();
    assert_eq!(code(&host.exit(stuck)), 0);
    assert_eq!(host.output(stuck, Channel::Stdout), b"ran an argument\n");
    assert!(has_started(&host, stuck));
    assert!(matches!(host.outcome(background), Reply::Spawned(..)));
}

#[test]
fn a_process_that_hangs_before_its_program_is_killed_timed_out_and_cancelled_like_any_other() {
    let Some(leased) = LeasedScript::new("exit 9") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let killed = Spec::new(&[&leased.path()]);
    let timed = Spec::new(&[&leased.path()]).with(|spec| spec.start.timeout_ms = 200);
    let cancelled = Spec::new(&[&leased.path()]);
    let streams = [&killed, &timed, &cancelled].map(|spec| host.start(spec));
    let process = Selector::Tag(&killed.tag);
    let kill = host.ask(&Request::Kill { process });
    assert!(matches!(kill, Reply::Exited(_, exit) if exit.cause == ExitCause::Killed));
    host.cancel(streams[2]);
    let causes = streams.map(|stream| host.exit(stream).cause);
    assert_eq!(
        causes,
        [ExitCause::Killed, ExitCause::Timeout, ExitCause::Killed]
    );
    // A signal ends it too.
    let signalled = Spec::new(&[&leased.path()]);
    let stream = host.start(&signalled);
    let process = Selector::Tag(&signalled.tag);
    let sent = host.ask(&Request::Signal {
        process,
        signal: 15,
    });
    assert!(matches!(sent, Reply::Done(_)));
    assert_eq!(host.exit(stream).cause, ExitCause::Signal(15));
    assert_eq!(host.list(0).0, []);
}

#[test]
fn a_stopped_process_that_has_no_program_yet_is_killed() {
    let Some(mut leased) = LeasedScript::new("exit 9") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&[&leased.path()]);
    let stuck = host.start(&spec);
    let attached = host.attach(Selector::Tag(&spec.tag), 0, 0);
    let pid = host.attached(attached).pid;
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    leased.release();
    assert_responsive(&mut host);
    assert_eq!(code(&host.run(&Spec::shell("exit 7")).0), 7);
    assert!(!has_started(&host, stuck));
    let process = Selector::Tag(&spec.tag);
    assert!(matches!(
        host.ask(&Request::Kill { process }),
        Reply::Exited(..)
    ));
    assert_eq!(host.exit(stuck).cause, ExitCause::Killed);
}

#[test]
fn a_process_without_a_program_keeps_nobody_elses_pipes_open() {
    let Some(leased) = LeasedScript::new("exit 9") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let reader = host.start(&Spec::new(&["cat"]).with_stdin());
    host.write_stdin(reader, b"all of it");
    host.until_bytes(reader, 9);
    // Its child gets copies of all descriptors of the agent.
    let stuck = host.start(&Spec::new(&[&leased.path()]));
    assert_responsive(&mut host);
    host.send(|out| encode::end(out, reader, Channel::Stdin));
    assert_eq!(code(&host.exit(reader)), 0);
    assert!(!has_started(&host, stuck));
}

#[test]
fn a_start_that_hangs_is_asked_for_again_after_a_lost_link() {
    let Some(mut leased) = LeasedScript::new("exit 3") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&[&leased.path()]).background();
    host.start(&spec);
    assert_responsive(&mut host);
    host.close();
    let mut host = agent.connect();
    let again = host.start(&spec);
    assert_responsive(&mut host);
    assert_eq!(host.list(0).0.len(), 1);
    leased.release();
    let Reply::Spawned(_, id, _) = host.outcome(again) else {
        panic!("not spawned");
    };
    let stream = host.attach(Selector::Id(id), 0, 0);
    assert_eq!(code(&host.exit(stream)), 3);
}

#[test]
fn who_stops_everything_of_a_user_stops_only_that_users_processes() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    // No other process here runs as this user.
    let as_victim = |spec: Spec| spec.with(|spec| spec.user = "54399".into());
    let stopper = as_victim(Spec::shell(
        "echo ready; while :; do kill -s STOP -- -1 2>/dev/null; done",
    ));
    let stopping = host.start(&stopper);
    host.until_bytes(stopping, 6);
    // It is a race, so it is tried until it has happened.
    let deadline = Instant::now() + TEST_TIMEOUT;
    let (mut stopped, mut tried) = (0, 0);
    while stopped == 0 || tried < 60 {
        assert!(Instant::now() < deadline, "nobody was stopped");
        tried += 1;
        let victim = as_victim(Spec::new(&["true"])).with(|spec| spec.start.timeout_ms = 100);
        let victim = host.start(&victim);
        assert_responsive(&mut host);
        match host.exit(victim).cause {
            ExitCause::Timeout => stopped += 1,
            cause => assert_eq!(cause, ExitCause::Code(0)),
        }
    }
    let process = Selector::Tag(&stopper.tag);
    assert!(matches!(
        host.ask(&Request::Kill { process }),
        Reply::Exited(..)
    ));
    let next = host.run(&as_victim(Spec::shell("exit 5")));
    assert_eq!(code(&next.0), 5);
}
