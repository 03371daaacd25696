//! Services and probes that behave badly.

use std::{
    net::TcpListener,
    os::unix::net::{UnixListener, UnixStream},
    time::{Duration, Instant},
};

use vmcell_wire::{
    ExitCause,
    service::{RestartPolicy, WaitFor},
};

use super::helpers::{
    ALL, Config, LONG_MS, Probe, log, look, open_log, open_wait, outcome, start, stop, text,
    until_over, until_printed, until_ready,
};
use crate::client::{RunningAgent, wait_until_gone};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the children of the agent.
fn children(agent: &RunningAgent) -> Vec<u32> {
    let pid = agent.child.id();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// Waits until the agent has exactly these children.
fn until_children_are(agent: &RunningAgent, expected: &[u32]) {
    let begun = Instant::now();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    loop {
        let mut found = children(agent);
        found.sort_unstable();
        if found == expected {
            return;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{found:?} not {expected:?}");
        std::thread::yield_now();
    }
}

/// Returns the number on the last line of a log.
fn last_number(text: &str) -> u32 {
    text.lines().last().unwrap().parse().unwrap()
}

#[test]
fn a_service_that_forks_and_exits_leaves_nothing() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    start(&mut host, "daemon", &Config::new("sleep 1000 & echo $!"));
    assert_eq!(until_over(&mut host, "daemon").phase, "Stopped");
    wait_until_gone(last_number(&log(&mut host, "daemon", ALL)));
    until_children_are(&agent, &[]);
}

#[test]
fn one_that_escapes_holds_its_log_open_for_a_while_only() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let escaped = dir.path().join("escaped");
    // This agent has no cgroups, so it keeps running. The service ends when it has
    // left the process group.
    let script = format!(
        "setsid sh -c 'echo $$; : > {0}; exec sleep 1000' & \
         until [ -e {0} ]; do sleep 0.01; done",
        escaped.display()
    );
    start(&mut host, "daemon", &Config::new(&script));
    let over = until_over(&mut host, "daemon");
    assert_eq!(over.phase, "Stopped");
    assert!(over.last_exit.unwrap().outputs_cut);
    let pid = last_number(&log(&mut host, "daemon", ALL));
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn one_that_ignores_its_signal_is_killed_with_all_its_children() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "trap '' TERM; sleep 1000 & echo $!; wait; wait; exec sleep 1000";
    let service = Config::new(script).with(|c| c.stop.grace_ms = 100);
    start(&mut host, "stubborn", &service);
    let stream = open_log(&mut host, "stubborn", ALL, true);
    until_printed(&mut host, stream, "\n", 1);
    let stopped = stop(&mut host, "stubborn");
    assert_eq!(stopped.phase, "Stopped");
    assert_eq!(stopped.last_exit.unwrap().cause, ExitCause::Killed);
    wait_until_gone(last_number(&text(&host, stream)));
}

#[test]
fn its_own_signal_is_heeded() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script =
        "trap 'echo bye; exit 0' USR1; trap '' TERM; echo up; while :; do sleep 0.01; done";
    let service = Config::new(script).with(|c| c.stop.signal = 10);
    start(&mut host, "polite", &service);
    let stream = open_log(&mut host, "polite", ALL, true);
    until_printed(&mut host, stream, "up\n", 1);
    let stopped = stop(&mut host, "polite");
    assert_eq!(stopped.last_exit.unwrap().cause, ExitCause::Code(0));
    outcome(&mut host, stream);
    assert!(text(&host, stream).ends_with("bye\n"));
}

#[test]
fn one_that_crashes_in_a_loop_is_given_longer_and_longer_pauses() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::new("date +%s%N; exit 1").policy(RestartPolicy::OnFailure);
    start(&mut host, "crashing", &service);
    let stream = open_log(&mut host, "crashing", ALL, true);
    until_printed(&mut host, stream, "\n", 7);
    assert!(look(&mut host, "crashing").restarts >= 6);
    stop(&mut host, "crashing");
    let moments: Vec<u128> = text(&host, stream)
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let pauses: Vec<u128> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, least) in pauses.iter().zip([20, 40, 80, 160, 160, 160]) {
        assert!(*pause >= least * 1_000_000, "{pauses:?}");
    }
}

#[test]
fn a_server_that_never_answers_does_not_hold_the_agent_up() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let probe = Probe::Http {
        port: listener.local_addr().unwrap().port(),
        path: "/".into(),
        body: String::new(),
    };
    let service = Config::idle().ready(probe).with(|service| {
        service.attempt_ms = 100;
        service.ready_ms = 1500;
    });
    start(&mut host, "mute", &service);
    let over = until_over(&mut host, "mute");
    assert_eq!(over.phase, "Failed(NotReady(\"no answer within 100 ms\"))");
    until_children_are(&agent, &[]);
}

#[test]
fn a_socket_whose_queue_is_full_is_not_ready() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    // Calling listen again minimises the backlog.
    rustix::net::listen(&listener, 0).unwrap();
    let _waiting = UnixStream::connect(&path).unwrap();
    let probe = Probe::Unix(path.display().to_string());
    let service = Config::idle().ready(probe).with(|c| c.ready_ms = 1500);
    start(&mut host, "full", &service);
    let over = until_over(&mut host, "full");
    let reason = "the backlog of the socket is full";
    assert_eq!(over.phase, format!("Failed(NotReady({reason:?}))"));
}

#[test]
fn a_probe_that_hangs_in_the_kernel_is_replaced() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ready");
    let service = Config::idle()
        .ready(Probe::File(path.display().to_string()))
        .with(|c| c.attempt_ms = 50);
    let service = start(&mut host, "web", &service).pid.unwrap();
    let ready = open_wait(&mut host, "web", WaitFor::Ready);
    // A stopped process is as unresponsive as one whose disk does not answer.
    let begun = Instant::now();
    let prober = loop {
        if let Some(prober) = children(&agent).into_iter().find(|pid| *pid != service) {
            break prober;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT);
    };
    let pid = rustix::process::Pid::from_raw(i32::try_from(prober).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    wait_until_gone(prober);
    std::fs::write(&path, "").unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
    until_children_are(&agent, &[service]);
}

#[test]
fn a_command_that_hangs_or_leaves_children_leaves_nothing() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids").display().to_string();
    let leaves = format!("sleep 1000 & echo $! >> {pids}");
    let config = Config::idle().ready(Probe::Command(leaves));
    let service = start(&mut host, "web", &config);
    assert_eq!(until_ready(&mut host, "web").phase, "Ready");
    until_children_are(&agent, &[service.pid.unwrap()]);
    wait_until_gone(last_number(&std::fs::read_to_string(&pids).unwrap()));
    stop(&mut host, "web");
    let hangs = format!("sleep 1000 & echo $! >> {pids}; wait");
    let service = Config::idle().ready(Probe::Command(hangs)).with(|service| {
        service.attempt_ms = 100;
        service.ready_ms = 2000;
    });
    start(&mut host, "web", &service);
    let over = until_over(&mut host, "web");
    assert_eq!(over.phase, "Failed(NotReady(\"no answer within 100 ms\"))");
    until_children_are(&agent, &[]);
    for pid in std::fs::read_to_string(&pids).unwrap().lines() {
        wait_until_gone(pid.parse().unwrap());
    }
}

#[test]
fn fifty_services_get_ready_at_once_and_one_process_asks_for_each() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("go");
    let mut pids = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..50 {
        let name = format!("s{number:02}");
        let service = Config::idle()
            .ready(Probe::File(flag.display().to_string()))
            .with(|c| c.interval_ms = LONG_MS);
        pids.push(start(&mut host, &name, &service).pid.unwrap());
        waiting.push(open_wait(&mut host, &name, WaitFor::Ready));
    }
    assert_eq!(children(&agent).len(), 100);
    std::fs::write(&flag, "").unwrap();
    for stream in waiting {
        assert_eq!(outcome(&mut host, stream).phase, "Ready");
    }
    until_children_are(&agent, &pids);
}

#[test]
fn probes_end_with_the_agent() {
    let mut agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::idle()
        .ready(Probe::File("/no/such/file".into()))
        .with(|c| c.interval_ms = LONG_MS);
    let service = start(&mut host, "web", &service).pid.unwrap();
    let begun = Instant::now();
    let prober = loop {
        if let Some(prober) = children(&agent).into_iter().find(|pid| *pid != service) {
            break prober;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT);
    };
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    wait_until_gone(prober);
    let pid = rustix::process::Pid::from_raw(i32::try_from(service).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
