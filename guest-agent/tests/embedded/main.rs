//! The agent in a program that has children and a loop of its own.
//!
//! Without the usual harness: the program that embeds the agent is this one again,
//! with a listening socket as its standard input, and must have one thread.
#![allow(clippy::unwrap_used)]

#[path = "../agent/client/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
mod client;
mod program;

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use vmcell_wire::{Capabilities, Channel, ExitCause, FailureKind, Request};

use client::{Reply, RunningAgent, Spec, code};
use program::Mode;

/// The argument with which this program embeds the agent.
const EMBED: &str = "--embed=";

fn main() {
    let mode = env::args().find_map(|argument| Some(argument.strip_prefix(EMBED)?.to_owned()));
    if let Some(name) = mode {
        let mode = Mode::ALL
            .into_iter()
            .find(|mode| format!("{mode:?}") == name);
        program::run(mode.unwrap());
    }
    for mode in [Mode::Apart, Mode::HandedOver] {
        println!("{mode:?}");
        commands_and_children_of_the_program_end_with_their_own_status(mode);
        commands_inherit_nothing_of_the_program(mode);
        what_the_program_does_not_allow_is_not_announced_and_is_rejected(mode);
    }
    commands_end_although_the_program_takes_their_status();
}

fn start(mode: Mode) -> RunningAgent {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(format!("{EMBED}{mode:?}")).current_dir("/tmp");
    RunningAgent::run(command.stdout(Stdio::piped()))
}

fn commands_and_children_of_the_program_end_with_their_own_status(mode: Mode) {
    let mut agent = start(mode);
    let mut host = agent.connect();
    let streams: Vec<_> = (0..20)
        .map(|number| host.start(&Spec::shell(&format!("exit {number}"))))
        .collect();
    for (stream, number) in streams.into_iter().zip(0..) {
        let Reply::Exited(_, exit) = host.outcome(stream) else {
            panic!("{stream:?} did not end");
        };
        assert_eq!(code(&exit), number);
        assert!(exit.peak_rss_kib > 0);
    }
    // One that is stopped has not ended.
    let stream = host.start(&Spec::shell(
        "(sleep 0.1; kill -CONT $$) & kill -STOP $$; exit 3",
    ));
    let Reply::Exited(_, exit) = host.outcome(stream) else {
        panic!("it did not end");
    };
    assert_eq!(code(&exit), 3);
    let printed = BufReader::new(agent.child.stdout.take().unwrap());
    for line in printed.lines().take(3) {
        assert_eq!(line.unwrap(), "own child: 5");
    }
}

/// Rust's programs ignore SIGPIPE, and this one is in another directory.
fn commands_inherit_nothing_of_the_program(mode: Mode) {
    let agent = start(mode);
    let mut host = agent.connect();
    let stream = host.start(&Spec::shell("pwd; kill -PIPE $$; echo not ended"));
    let Reply::Exited(_, exit) = host.outcome(stream) else {
        panic!("it did not end");
    };
    assert_eq!(host.seen[&(stream, Channel::Stdout)], b"/\n");
    assert_eq!(exit.cause, ExitCause::Signal(13));
}

fn what_the_program_does_not_allow_is_not_announced_and_is_rejected(mode: Mode) {
    let agent = start(mode);
    let mut host = agent.connect();
    let denied = Capabilities::POWER_OFF | Capabilities::CLOCK;
    assert_eq!(host.capabilities, Capabilities::ALL.difference(denied));
    for request in [
        Request::PowerOff { grace_ms: 0 },
        Request::SetClock { wall_time_ns: 1 },
    ] {
        let stream = host.open(&request);
        let outcome = host.outcome(stream);
        assert!(matches!(
            outcome,
            Reply::Failed(_, FailureKind::Unsupported, ..)
        ));
    }
}

fn commands_end_although_the_program_takes_their_status() {
    let agent = start(Mode::Stolen);
    let mut host = agent.connect();
    for _ in 0..5 {
        let stream = host.exec(&["true"]);
        let outcome = host.outcome(stream);
        assert!(matches!(outcome, Reply::Exited(..)), "{outcome:?}");
    }
}
