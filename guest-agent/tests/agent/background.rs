//! Processes that outlive their streams, and requests that name them.

use crate::client::{Reply, RunningAgent, Spec, code, wait_until_gone};
use vmcell_wire::{
    Attach, Channel, Exit, ExitCause, FailureKind, Output, Position, ProcessMode, Request,
    Selector, Stage, Stdin, encode,
};

const NOW: u64 = Position::NOW;
const NOT_FOUND: (FailureKind, Stage) = (FailureKind::NotFound, Stage::Process);
const CONFLICT: (FailureKind, Stage) = (FailureKind::Conflict, Stage::Process);

fn exited(reply: Reply) -> Exit {
    match reply {
        Reply::Exited(_, exit) => exit,
        other => panic!("not an exit: {other:?}"),
    }
}

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

#[test]
fn the_list_shows_running_and_ended_processes_in_order() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    assert_eq!(host.list(0), (vec![], false));
    let background = Spec::new(&["echo", "a b", "c"]).background();
    let (first, _) = host.spawn(&background);
    let stream = host.attach(Selector::Id(first), NOW, NOW);
    let exit = host.exit(stream);
    let foreground = Spec::new(&["sleep", "1000"]);
    host.start(&foreground);
    let (listed, more) = host.list(0);
    assert!(!more);
    assert_eq!(listed.len(), 2);
    assert_eq!((listed[0].id, &listed[0].tag), (first, &background.tag));
    assert_eq!(listed[0].argv, [&b"echo"[..], b"a b", b"c"]);
    assert_eq!(listed[0].exit, Some(exit));
    assert_eq!(listed[0].stdout, (0, 6));
    assert_eq!(listed[0].mode, ProcessMode::Background);
    assert_eq!(listed[0].uid, rustix::process::geteuid().as_raw());
    assert_eq!(
        (&listed[1].tag, listed[1].exit, listed[1].mode),
        (&foreground.tag, None, ProcessMode::Foreground)
    );
    assert_eq!(host.list(first).0.len(), 1);
    assert_eq!(host.list(u32::MAX), (vec![], false));
}

#[test]
fn a_long_list_comes_in_parts() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    for _ in 0..70 {
        host.spawn(&Spec::new(&["true", &"x".repeat(400)]).background());
    }
    let (first, more) = host.list(0);
    assert!(more);
    assert_eq!(first.len(), 64);
    assert_eq!(first[0].argv, [b"true"]);
    let (rest, more) = host.list(first[63].id);
    assert!(!more);
    assert_eq!(rest.len(), 6);
}

#[test]
fn the_oldest_of_many_ended_processes_is_forgotten() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (first, _) = host.spawn(&Spec::new(&["true"]).background());
    for _ in 0..256 {
        let (id, _) = host.spawn(&Spec::new(&["true"]).background());
        let stream = host.attach(Selector::Id(id), 0, 0);
        host.exit(stream);
    }
    let process = Selector::Id(first);
    assert_eq!(host.refused(&Request::Forget { process }), NOT_FOUND);
    let mut all = host.list(0).0;
    while let (more, true) = host.list(all[all.len() - 1].id) {
        all.extend(more);
    }
    assert!(all[0].id > first);
}

#[test]
fn a_signal_reaches_the_whole_group() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "trap 'echo caught; exit 0' USR1; echo ready; while :; do sleep 0.05; done";
    let (id, pid) = host.spawn(&Spec::shell(script).background());
    let stream = host.attach(Selector::Pid(pid), 0, 0);
    host.until_bytes(stream, 6);
    let signal = |process, signal| Request::Signal { process, signal };
    let process = Selector::Id(id);
    assert!(matches!(host.ask(&signal(process, 0)), Reply::Done(_)));
    let invalid = (FailureKind::Invalid, Stage::Request);
    for number in [65, 99, 255] {
        assert_eq!(host.refused(&signal(process, number)), invalid);
    }
    assert!(matches!(host.ask(&signal(process, 10)), Reply::Done(_)));
    assert_eq!(code(&host.exit(stream)), 0);
    assert_eq!(host.output(stream, Channel::Stdout), b"ready\ncaught\n");
    for number in [0, 9] {
        assert_eq!(host.refused(&signal(process, number)), NOT_FOUND);
    }
    let nobody = Selector::Tag("nobody");
    assert_eq!(host.refused(&signal(nobody, 9)), NOT_FOUND);
    assert_eq!(host.refused(&signal(Selector::Id(99), 9)), NOT_FOUND);
    assert_eq!(host.refused(&signal(Selector::Pid(1), 9)), NOT_FOUND);
}

#[test]
fn a_real_time_signal_is_a_signal() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = host.spawn(&Spec::new(&["sleep", "1000"]).background());
    let stream = host.attach(Selector::Id(id), 0, 0);
    host.ask(&Request::Signal {
        process: Selector::Id(id),
        signal: 64,
    });
    assert_eq!(host.exit(stream).cause, ExitCause::Signal(64));
}

#[test]
fn kill_ends_the_tree_and_keeps_what_was_printed() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "trap '' TERM INT; sleep 1000 & echo $!; wait";
    let (id, pid) = host.spawn(&Spec::shell(script).background());
    let watching = host.attach(Selector::Id(id), 0, 0);
    host.until(|reply| matches!(reply, Reply::Data(..)));
    let process = Selector::Id(id);
    let exit = exited(host.ask(&Request::Kill { process }));
    assert_eq!(exit.cause, ExitCause::Killed);
    wait_until_gone(pid);
    let seen = host.exit(watching);
    assert_eq!(seen.cause, ExitCause::Killed);
    let text = String::from_utf8(host.output(watching, Channel::Stdout).to_vec()).unwrap();
    wait_until_gone(text.trim().parse().unwrap());
    // Repeating it changes nothing.
    assert_eq!(
        exited(host.ask(&Request::Kill { process })).cause,
        ExitCause::Killed
    );
    let late = host.attach(process, 0, 0);
    host.exit(late);
    assert_eq!(host.output(late, Channel::Stdout), text.as_bytes());
}

#[test]
fn killing_what_has_ended_tells_how_it_ended() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = host.spawn(&Spec::shell("exit 7").background());
    let stream = host.attach(Selector::Id(id), 0, 0);
    host.exit(stream);
    let process = Selector::Id(id);
    let exit = exited(host.ask(&Request::Kill { process }));
    assert_eq!(code(&exit), 7);
    assert_eq!(
        host.refused(&Request::Kill {
            process: Selector::Id(id + 1)
        }),
        NOT_FOUND
    );
}

#[test]
fn a_foreground_process_that_somebody_else_kills_is_reported_with_its_output() {
    let agent = RunningAgent::start();
    let mut owner = agent.connect();
    let mut other = agent.connect();
    let spec = Spec::shell("echo printed; exec sleep 1000");
    let stream = owner.start(&spec);
    owner.until_bytes(stream, 8);
    let process = Selector::Tag(&spec.tag);
    assert_eq!(
        exited(other.ask(&Request::Kill { process })).cause,
        ExitCause::Killed
    );
    assert_eq!(owner.exit(stream).cause, ExitCause::Killed);
    assert_eq!(owner.output(stream, Channel::Stdout), b"printed\n");
}

#[test]
fn what_is_forgotten_is_gone() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"]).background().with_stdin();
    let (id, _) = host.spawn(&spec);
    let process = Selector::Id(id);
    assert_eq!(host.refused(&Request::Forget { process }), CONFLICT);
    host.ask(&Request::Kill { process });
    assert!(matches!(
        host.ask(&Request::Forget { process }),
        Reply::Done(_)
    ));
    assert_eq!(host.refused(&Request::Forget { process }), NOT_FOUND);
    assert_eq!(host.list(0).0, []);
    // Its tag is free again.
    let again = Spec::new(&["true"])
        .background()
        .with(|other| other.tag.clone_from(&spec.tag));
    host.spawn(&again);
    let foreground = Spec::new(&["sleep", "1000"]);
    host.start(&foreground);
    let process = Selector::Tag(&foreground.tag);
    assert_eq!(host.refused(&Request::Forget { process }), CONFLICT);
}

#[test]
fn a_tag_belongs_to_one_known_process() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let tagged = |argv: &[&str], tag: &str| Spec::new(argv).with(|spec| spec.tag = tag.into());
    let (id, _) = host.spawn(&tagged(&["true"], "mine").background());
    let stream = host.attach(Selector::Tag("mine"), 0, 0);
    host.exit(stream);
    let conflict = (FailureKind::Conflict, Stage::Request);
    assert_eq!(host.start_refused(&tagged(&["true"], "mine")), conflict);
    let process = Selector::Id(id);
    host.ask(&Request::Forget { process });
    let running = host.start(&tagged(&["sleep", "1000"], "mine"));
    assert_eq!(host.start_refused(&tagged(&["true"], "mine")), conflict);
    host.send(|out| encode::cancel(out, running));
    host.exit(running);
    // The tag of a foreground process is free when it has ended.
    let (exit, _) = host.run(&tagged(&["true"], "mine"));
    assert_eq!(code(&exit), 0);
    let invalid = (FailureKind::Invalid, Stage::Request);
    for tag in ["", "a b", "a/b", "ä", "new\nline", &"x".repeat(65)] {
        assert_eq!(
            host.start_refused(&tagged(&["true"], tag)),
            invalid,
            "{tag}"
        );
    }
    host.run(&tagged(&["true"], &"x".repeat(64)));
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
