//! Requests about processes also work for terminals.

use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use vmcell_wire::{
    Attach, ExitCause, FailureKind, Position, ProcessMode, Request, Selector, Stage,
    terminal::{InputKind, Size, TerminalRequest, UnreadOutput},
};

use super::helpers::*;
use crate::client::{Reply, RunningAgent, Spec, wait_until_gone};

fn kind_and_stage(reply: &Reply) -> (FailureKind, Stage) {
    match reply {
        Reply::Failed(_, kind, _, stage) => (*kind, *stage),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn sizes_that_make_no_sense_are_refused_and_leave_nothing_behind() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["sleep", "1000"]);
    let refused = (FailureKind::Invalid, Stage::Terminal);
    for (columns, rows) in [(0, 24), (80, 0), (0, 0), (1001, 24), (80, 65535)] {
        let reply = try_open(
            &mut host,
            &spec,
            UnreadOutput::Block,
            Size { columns, rows },
        );
        assert_eq!(kind_and_stage(&reply), refused);
    }
    assert_eq!(host.list(0).0, []);
    let (id, _) = open(&mut host, &spec, UnreadOutput::Block);
    for (columns, rows) in [(0, 24), (80, 0), (1001, 24), (80, 65535)] {
        assert_eq!(
            kind_and_stage(&resize(&mut host, id, columns, rows)),
            refused
        );
    }
    assert_eq!(look(&mut host, id).size, SIZE);
}

#[test]
fn a_program_that_is_not_there_leaves_no_terminal() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["/no/such/program"]);
    let reply = try_open(&mut host, &spec, UnreadOutput::Block, SIZE);
    assert_eq!(kind_and_stage(&reply), (FailureKind::NotFound, Stage::Exec));
    assert_eq!(host.list(0).0, []);
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", agent.child.id())).unwrap();
    let terminals = descriptors
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target.starts_with("/dev/pts") || target.ends_with("ptmx"));
    // The test itself may run on a terminal, which the agent then inherits.
    let ours = (0..3).filter_map(|fd| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok());
    let ours: Vec<_> = ours.collect();
    assert_eq!(terminals.filter(|one| !ours.contains(one)).count(), 0);
}

#[test]
fn a_repeated_request_opens_no_second_terminal() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"]);
    let first = open(&mut host, &spec, UnreadOutput::Block);
    host.close();
    let mut host = agent.connect();
    assert_eq!(open(&mut host, &spec, UnreadOutput::Block), first);
    assert_eq!(host.list(0).0.len(), 1);
    // Nor does it match a start without a terminal.
    let conflict = (FailureKind::Conflict, Stage::Request);
    assert_eq!(host.start_refused(&spec), conflict);
    let background = Spec::new(&["cat"]).background();
    host.spawn(&background);
    let reply = try_open(&mut host, &background, UnreadOutput::Block, SIZE);
    assert_eq!(kind_and_stage(&reply), conflict);
}

#[test]
fn terminals_are_listed_with_the_others_and_by_themselves() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    host.spawn(&Spec::new(&["true"]).background());
    let (terminal, _) = open(&mut host, &Spec::bash(), UnreadOutput::Block);
    host.spawn(&Spec::new(&["true"]).background());
    assert_eq!(host.list(0).0.len(), 3);
    let list = |after| Request::Terminal(TerminalRequest::List { after });
    let (listed, more) = host.list_by(&list(0));
    assert_eq!((listed.len(), more), (1, false));
    let entry = listed.first().unwrap();
    assert_eq!((entry.id, entry.mode), (terminal, ProcessMode::Background));
    assert_eq!(host.list_by(&list(terminal)).0, []);
}

#[test]
fn a_terminal_can_have_another_tag() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &Spec::bash(), UnreadOutput::Block);
    let other = Spec::bash();
    open(&mut host, &other, UnreadOutput::Block);
    let mut rename = |tag| {
        host.ask(&Request::Terminal(TerminalRequest::Rename {
            process: Selector::Id(id),
            tag,
        }))
    };
    assert!(matches!(rename("build"), Reply::Done(_)));
    // Repeating it does no harm: the answer may have been lost.
    assert!(matches!(rename("build"), Reply::Done(_)));
    let conflict = (FailureKind::Conflict, Stage::Request);
    assert_eq!(kind_and_stage(&rename(&other.tag)), conflict);
    let invalid = (FailureKind::Invalid, Stage::Request);
    for tag in ["", "a b", &"x".repeat(65)] {
        assert_eq!(kind_and_stage(&rename(tag)), invalid);
    }
    let listed = host.list(0).0;
    assert_eq!(listed.first().unwrap().tag, "build");
    let process = Selector::Tag("build");
    assert!(matches!(
        host.ask(&Request::Kill { process }),
        Reply::Exited(..)
    ));
}

#[test]
fn what_is_for_terminals_is_refused_for_other_processes() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["true"]).background();
    let (id, _) = host.spawn(&spec);
    let refused = (FailureKind::Invalid, Stage::Terminal);
    assert_eq!(kind_and_stage(&resize(&mut host, id, 80, 24)), refused);
    assert_eq!(
        kind_and_stage(&signal(&mut host, id, libc::SIGTERM)),
        refused
    );
    let secret = type_as(&mut host, id, b"x", InputKind::Secret);
    assert_eq!(kind_and_stage(&secret), refused);
    let missing = (FailureKind::NotFound, Stage::Process);
    assert_eq!(kind_and_stage(&resize(&mut host, 99, 80, 24)), missing);
    // A writer of a terminal must identify itself.
    let (id, _) = open(&mut host, &Spec::bash(), UnreadOutput::Block);
    let attach = Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: None,
        stderr: None,
        stdin: true,
    });
    assert_eq!(host.refused(&attach), refused);
}

#[test]
fn a_terminal_that_was_killed_is_known_until_it_is_forgotten() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["sh", "-c", "echo last words; exec sleep 1000"]);
    let (id, pid) = open(&mut host, &spec, UnreadOutput::DropOldest);
    let process = Selector::Id(id);
    let stream = attach_writer(&mut host, id, 0, 1);
    until_printed(&mut host, stream, "last words", 1);
    let forget = Request::Forget { process };
    assert_eq!(
        host.refused(&forget),
        (FailureKind::Conflict, Stage::Process)
    );
    let Reply::Exited(_, exit) = host.ask(&Request::Kill { process }) else {
        panic!("not killed");
    };
    assert_eq!(exit.cause, ExitCause::Killed);
    wait_until_gone(pid);
    assert_eq!(host.exit(stream).cause, ExitCause::Killed);

    let ended = (FailureKind::NotFound, Stage::Terminal);
    assert_eq!(kind_and_stage(&resize(&mut host, id, 80, 24)), ended);
    assert_eq!(kind_and_stage(&signal(&mut host, id, libc::SIGINT)), ended);
    let secret = type_as(&mut host, id, b"x", InputKind::Secret);
    assert_eq!(kind_and_stage(&secret), ended);
    let look = Request::Terminal(TerminalRequest::GetState { process });
    assert_eq!(host.refused(&look), ended);
    // Its output can be read again.
    let stream = attach_writer(&mut host, id, 5, 2);
    assert_eq!(host.exit(stream).cause, ExitCause::Killed);
    assert_eq!(printed(&host, stream), "words\n");
    assert!(matches!(host.ask(&forget), Reply::Done(_)));
    assert_eq!(host.list(0).0, []);
}

#[test]
fn a_terminal_stays_as_it_is_when_it_is_detached() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::shell("seq 1000000").with(|spec| spec.start.keep = 16 * 1024);
    let (id, _) = open(&mut host, &spec, UnreadOutput::Block);
    let process = Selector::Id(id);
    assert!(matches!(
        host.ask(&Request::Detach { process }),
        Reply::Done(_)
    ));
    let stream = attach_writer(&mut host, id, 0, 1);
    host.exit(stream);
    assert!(printed(&host, stream).starts_with("1\n2\n3\n"));
    assert!(printed(&host, stream).ends_with("\n1000000\n"));
}

#[test]
fn the_time_of_a_terminal_can_be_limited() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::bash().with(|spec| spec.start.timeout_ms = 100);
    let (_, stream) = open_attached(&mut host, &spec);
    assert_eq!(host.exit(stream).cause, ExitCause::Timeout);
}

#[test]
fn as_many_terminals_as_there_may_be_and_one_more() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let pid = Pid::from_raw(i32::try_from(agent.child.id()).unwrap());
    let few = Rlimit {
        current: Some(1000),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    prlimit(pid, Resource::Nofile, few).unwrap();
    let mut opened = Vec::new();
    let refused = loop {
        let spec = Spec::new(&["cat"]);
        match try_open(&mut host, &spec, UnreadOutput::Block, SIZE) {
            Reply::Spawned(_, id, _) => opened.push(id),
            other => break other,
        }
    };
    // The agent ran out of descriptors, for the terminal or for the pipe.
    let (kind, stage) = kind_and_stage(&refused);
    assert_eq!(kind, FailureKind::Limit);
    assert!(matches!(stage, Stage::Terminal | Stage::Pipes), "{stage:?}");
    assert!(opened.len() > 300, "{}", opened.len());
    // All of them run, and when one ends there is room for another.
    let first = *opened.first().unwrap();
    for id in &opened {
        let stream = attach_writer(&mut host, *id, 0, 1);
        host.write_stdin(stream, b"here\n");
        until_printed(&mut host, stream, "here\n", 2);
        host.cancel(stream);
        host.outcome(stream);
    }
    host.ask(&Request::Kill {
        process: Selector::Id(first),
    });
    open(&mut host, &Spec::new(&["cat"]), UnreadOutput::Block);
}

#[test]
fn a_terminal_belongs_to_its_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start programs of other users");
        return;
    }
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    for (user, uid) in [("", 0), ("65534:65534", 65534)] {
        // It can be opened by name, too.
        let script = "echo $(tty) >/dev/tty; exec sleep 1000";
        let spec = Spec::shell(script).with(|spec| spec.user = user.into());
        let (_, stream) = open_attached(&mut host, &spec);
        until_printed(&mut host, stream, "\n", 1);
        let text = printed(&host, stream);
        let status = std::fs::metadata(text.trim()).unwrap();
        assert_eq!((status.uid(), status.gid()), (uid, 5));
        assert_eq!(status.mode() & 0o7777, 0o620);
    }
}

#[test]
fn a_shell_that_ignores_a_request_to_end_heeds_the_end_of_its_terminal() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (_, pid) = open(&mut host, &Spec::bash(), UnreadOutput::Block);
    let (_, stream) = open_attached(&mut host, &Spec::bash());
    until_printed(&mut host, stream, "$ ", 1);
    let grace_ms = 20_000;
    host.open(&Request::PowerOff { grace_ms });
    host.until(|reply| *reply == Reply::PoweringOff);
    wait_until_gone(pid);
}

#[test]
fn who_only_watches_needs_no_number() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(
        &mut host,
        &Spec::shell("echo out; exit 4"),
        UnreadOutput::DropOldest,
    );
    let stream = host.open(&Request::Attach(Attach {
        process: Selector::Id(id),
        stdout: Some(Position {
            offset: 0,
            window: host.window,
        }),
        stderr: Some(Position {
            offset: 0,
            window: host.window,
        }),
        stdin: false,
    }));
    assert_eq!(host.attached(stream).stdin, None);
    assert_eq!(host.exit(stream).cause, ExitCause::Code(4));
    assert_eq!(printed(&host, stream), "out\n");
}
