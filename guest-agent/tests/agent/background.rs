//! Processes that outlive their streams.

use crate::client::{Reply, RunningAgent, Spec, code, wait_until_gone};
use vmcell_wire::{
    Attach, Channel, FailureKind, Position, ProcessMode, Request, Selector, Stage, Stdin, encode,
};

const NOW: u64 = Position::NOW;
const NOT_FOUND: (FailureKind, Stage) = (FailureKind::NotFound, Stage::Process);

#[test]
fn a_background_process_outlives_its_link_and_can_be_read_from_its_start() {
    let agent = RunningAgent::with_short_grace();
    let mut host = agent.connect();
    let script = "echo one; sleep 0.6; echo two; echo err >&2; exit 5";
    let (id, _) = host.spawn(&Spec::shell(script).background());
    host.close();
    let mut other = agent.connect();
    let stream = other.attach(Selector::Id(id), 0, 0);
    let attached = other.attached(stream);
    assert_eq!((attached.stdout, attached.stderr), (0, 0));
    assert_eq!(attached.stdin, None);
    let exit = other.exit(stream);
    assert_eq!(code(&exit), 5);
    assert_eq!(other.output(stream, Channel::Stdout), b"one\ntwo\n");
    assert_eq!(other.output(stream, Channel::Stderr), b"err\n");
    // It is still available to any host.
    let again = other.attach(Selector::Id(id), 4, NOW);
    assert_eq!(other.exit(again), exit);
    assert_eq!(other.output(again, Channel::Stdout), b"two\n");
    assert_eq!(other.output(again, Channel::Stderr), b"");
}

#[test]
fn a_detached_process_survives_its_owner() {
    let agent = RunningAgent::with_short_grace();
    let mut host = agent.connect();
    let spec = Spec::shell("echo before; read go; echo after").with_stdin();
    let stream = host.start(&spec);
    host.until_bytes(stream, 7);
    let process = Selector::Tag(&spec.tag);
    assert!(matches!(
        host.ask(&Request::Detach { process }),
        Reply::Done(_)
    ));
    // Its stream continues as an observer: cancelling it does not kill the
    // process.
    host.send(|out| encode::cancel(out, stream));
    assert_eq!(host.outcome(stream), Reply::Done(stream));
    let canary = host.start_canary();
    host.close();
    wait_until_gone(canary);
    let mut other = agent.connect();
    let (listed, _) = other.list(0);
    assert_eq!(listed[0].mode, ProcessMode::Background);
    assert_eq!(listed[0].exit, None);
    let watching = other.open(&Request::Attach(Attach {
        process,
        stdout: Some(Position {
            offset: 0,
            window: 1000,
        }),
        stderr: None,
        stdin: true,
    }));
    other.write_stdin(watching, b"\n");
    assert_eq!(code(&other.exit(watching)), 0);
    assert_eq!(other.output(watching, Channel::Stdout), b"before\nafter\n");
    assert_eq!(
        other.refused(&Request::Detach {
            process: Selector::Id(99)
        }),
        NOT_FOUND
    );
}

#[test]
fn a_process_that_is_detached_in_mid_flood_does_not_wait_any_more() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(1 << 20);
    host.credit_automatically = false;
    let spec = Spec::shell("head -c 8000000 /dev/zero | tr '\\0' x; echo end");
    let stream = host.start(&spec);
    host.until_bytes(stream, 1 << 20);
    let process = Selector::Tag(&spec.tag);
    host.ask(&Request::Detach { process });
    loop {
        let (listed, _) = host.list(0);
        if listed[0].exit.is_some() {
            break;
        }
    }
    host.credit_automatically = true;
    host.grant(stream, Channel::Stdout, 1 << 20);
    let exit = host.exit(stream);
    assert_eq!(exit.stdout_bytes, 8_000_004);
    let got = host.output(stream, Channel::Stdout);
    assert!(got.ends_with(b"xend\n"));
    assert!(got[..got.len() - 4].iter().all(|byte| *byte == b'x'));
}

#[test]
fn the_same_start_twice_is_one_process() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["sleep", "1000"]).background();
    let first = host.spawn(&spec);
    assert_eq!(host.spawn(&spec), first);
    assert_eq!(host.list(0).0.len(), 1);
    let foreground = Spec::new(&["sleep", "1000"]);
    host.start(&foreground);
    let conflict = (FailureKind::Conflict, Stage::Request);
    assert_eq!(host.start_refused(&foreground), conflict);
}

#[test]
fn a_process_that_reads_from_nobody_can_be_fed_later() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"])
        .background()
        .with(|spec| spec.start.stdin = Stdin::Stream);
    let (id, _) = host.spawn(&spec);
    let feed = |process, stdin| {
        Request::Attach(Attach {
            process,
            stdout: None,
            stderr: None,
            stdin,
        })
    };
    let process = Selector::Id(id);
    let first = host.open(&feed(process, true));
    host.write_stdin(first, b"one ");
    host.send(|out| encode::cancel(out, first));
    host.outcome(first);
    let second = host.open(&feed(process, true));
    assert_eq!(host.attached(second).stdin.unwrap().offset, 4);
    host.write_stdin(second, b"two");
    host.send(|out| encode::end(out, second, Channel::Stdin));
    host.exit(second);
    let reader = host.attach(process, 0, 0);
    host.exit(reader);
    assert_eq!(host.output(reader, Channel::Stdout), b"one two");
    let late = host.open(&feed(process, true));
    assert_eq!(host.attached(late).stdin, None);
}
