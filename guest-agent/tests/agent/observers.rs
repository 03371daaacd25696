//! Streams that observe a process, from any offset and any link.

use crate::client::{Reply, RunningAgent, Spec, code};
use vmcell_wire::{
    Attach, Channel, FailureKind, Output, Position, Request, Selector, Stage, encode,
};

const NOW: u64 = Position::NOW;

#[test]
fn only_the_outputs_that_were_asked_for_come_and_end() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = host.spawn(&Spec::shell("echo out; echo err >&2").background());
    let stream = host.open(&Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: None,
        stderr: Some(Position {
            offset: 0,
            window: 1000,
        }),
        stdin: false,
    }));
    let all = host.until(|reply| matches!(reply, Reply::Exited(..)));
    let ends: Vec<_> = all
        .iter()
        .filter(|reply| matches!(reply, Reply::End(..)))
        .collect();
    assert_eq!(ends, [&Reply::End(stream, Channel::Stderr)]);
    assert_eq!(host.output(stream, Channel::Stdout), b"");
    assert_eq!(host.output(stream, Channel::Stderr), b"err\n");
}

#[test]
fn now_is_what_has_not_been_written_yet() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "echo before; read line; echo after";
    let (id, _) = host.spawn(&Spec::shell(script).background().with_stdin());
    let first = host.attach(Selector::Id(id), 0, 0);
    host.until_bytes(first, 7);
    let stream = host.open(&Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: Some(Position {
            offset: NOW,
            window: 1000,
        }),
        stderr: None,
        stdin: true,
    }));
    let attached = host.attached(stream);
    assert_eq!(attached.stdout, 7);
    assert_eq!(attached.stdin.unwrap().offset, 0);
    host.write_stdin(stream, b"go\n");
    host.exit(stream);
    assert_eq!(host.output(stream, Channel::Stdout), b"after\n");
    host.exit(first);
    assert_eq!(host.output(first, Channel::Stdout), b"before\nafter\n");
}

#[test]
fn a_reader_that_comes_late_gets_a_gap_of_the_exact_length() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    // 20,000 lines of 10 bytes.
    let spec = Spec::shell("seq -f %09.0f 20000")
        .background()
        .with(|spec| spec.start.keep = 16 * 1024);
    let (id, _) = host.spawn(&spec);
    let watch = host.attach(Selector::Id(id), NOW, NOW);
    host.exit(watch);
    let stream = host.attach(Selector::Id(id), 10, 0);
    let all = host.until(|reply| matches!(reply, Reply::Exited(id, _) if *id == stream));
    let gaps: Vec<_> = all
        .iter()
        .filter(|reply| matches!(reply, Reply::Gap(..)))
        .collect();
    let lost = 200_000 - 10 - 16 * 1024;
    assert_eq!(gaps, [&Reply::Gap(stream, Output::Stdout, lost)]);
    let whole: String = (1..=20000).map(|n| format!("{n:09}\n")).collect();
    let expected = &whole.as_bytes()[200_000 - 16 * 1024..];
    assert_eq!(host.output(stream, Channel::Stdout), expected);
}

#[test]
fn a_reader_that_is_slow_loses_bytes_and_is_told_how_many() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(4096);
    host.credit_automatically = false;
    let spec = Spec::shell("read go; seq -f %09.0f 100000")
        .background()
        .with_stdin()
        .with(|spec| spec.start.keep = 16 * 1024);
    let (id, _) = host.spawn(&spec);
    let slow = host.open(&Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: Some(Position {
            offset: 0,
            window: 4096,
        }),
        stderr: None,
        stdin: true,
    }));
    host.write_stdin(slow, b"go\n");
    // It gets no more than its window, and the process ends nevertheless.
    host.until_bytes(slow, 4096);
    let whole: String = (1..=100_000).map(|n| format!("{n:09}\n")).collect();
    loop {
        let (listed, _) = host.list(0);
        if listed[0].exit.is_some() {
            assert_eq!(listed[0].stdout, (1_000_000 - 16 * 1024, 1_000_000));
            break;
        }
    }
    host.credit_automatically = true;
    host.grant(slow, Channel::Stdout, 100_000);
    host.exit(slow);
    let got = host.output(slow, Channel::Stdout);
    // Every byte is at the offset that follows from the gaps before it.
    let (mut seen, mut offset) = (0, 0);
    for reply in host.replies_on(slow) {
        match reply {
            Reply::Gap(_, _, bytes) => offset += usize::try_from(*bytes).unwrap(),
            Reply::Data(_, _, count) => {
                let expected = &whole.as_bytes()[offset..offset + count];
                assert_eq!(&got[seen..seen + count], expected);
                (seen, offset) = (seen + count, offset + count);
            }
            _ => {}
        }
    }
    assert_eq!(offset, 1_000_000);
    assert_eq!(seen, 4096 + 16 * 1024);
}

#[test]
fn an_offset_beyond_the_end_is_refused() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = host.spawn(&Spec::new(&["echo", "hi"]).background());
    let stream = host.attach(Selector::Id(id), 0, 0);
    host.exit(stream);
    for (stdout, stderr) in [(4, 0), (0, 1), (NOW - 1, 0)] {
        let stream = host.attach(Selector::Id(id), stdout, stderr);
        let refused = Reply::Failed(stream, FailureKind::Invalid, 0, Stage::Request);
        assert_eq!(host.outcome(stream), refused);
    }
    let stream = host.attach(Selector::Id(id), 3, 0);
    host.exit(stream);
    assert_eq!(host.output(stream, Channel::Stdout), b"");
}

#[test]
fn two_observers_on_two_links_see_the_same() {
    let agent = RunningAgent::start();
    let mut one = agent.connect();
    let mut two = agent.connect();
    let spec = Spec::shell("read go; seq 50000")
        .background()
        .with_stdin()
        .with(|spec| spec.start.keep = 1 << 20);
    let (id, _) = one.spawn(&spec);
    let first = one.attach(Selector::Id(id), 0, 0);
    let second = two.open(&Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: Some(Position {
            offset: 0,
            window: 64 * 1024,
        }),
        stderr: None,
        stdin: true,
    }));
    two.write_stdin(second, b"\n");
    two.exit(second);
    one.exit(first);
    let whole: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(one.output(first, Channel::Stdout), whole.as_bytes());
    assert_eq!(two.output(second, Channel::Stdout), whole.as_bytes());
}

#[test]
fn an_observer_on_another_link_sees_a_foreground_process_too() {
    let agent = RunningAgent::start();
    let mut owner = agent.connect();
    let mut observer = agent.connect();
    let spec = Spec::shell("echo hello; read go; seq 100000").with_stdin();
    let stream = owner.start(&spec);
    owner.until_bytes(stream, 6);
    let watching = observer.attach(Selector::Tag(&spec.tag), 0, 0);
    observer.until_bytes(watching, 6);
    owner.write_stdin(stream, b"\n");
    let exit = owner.exit(stream);
    assert_eq!(observer.exit(watching), exit);
    assert_eq!(
        observer.output(watching, Channel::Stdout),
        owner.output(stream, Channel::Stdout)
    );
}

#[test]
fn cancelling_an_observer_leaves_the_process_alone() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"]).with_stdin();
    let owner = host.start(&spec);
    let observer = host.attach(Selector::Tag(&spec.tag), 0, 0);
    host.send(|out| encode::cancel(out, observer));
    assert_eq!(host.outcome(observer), Reply::Done(observer));
    host.write_stdin(owner, b"alive");
    host.send(|out| encode::end(out, owner, Channel::Stdin));
    assert_eq!(code(&host.exit(owner)), 0);
    assert_eq!(host.output(owner, Channel::Stdout), b"alive");
}

#[test]
fn whoever_asks_for_standard_input_last_has_it() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"]).with_stdin();
    let first = host.start(&spec);
    host.write_stdin(first, b"one ");
    host.until_bytes(first, 4);
    let second = host.open(&Request::Attach(Attach {
        process: Selector::Tag(&spec.tag),
        stdout: None,
        stderr: None,
        stdin: true,
    }));
    let stdin = host.attached(second).stdin.unwrap();
    assert_eq!((stdin.offset, stdin.window), (4, 256 * 1024));
    // What the first one sends now is dropped, but its credit is returned.
    for _ in 0..4 {
        host.write_stdin(first, &[b'x'; 128 * 1024]);
        host.until(|reply| matches!(reply, Reply::Credit(id, _) if *id == first));
    }
    host.send(|out| encode::end(out, first, Channel::Stdin));
    host.write_stdin(second, b"two");
    host.send(|out| encode::end(out, second, Channel::Stdin));
    host.exit(first);
    assert_eq!(host.output(first, Channel::Stdout), b"one two");
}
