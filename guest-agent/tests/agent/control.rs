//! Requests that list, signal, kill and forget processes.

use crate::client::{Reply, RunningAgent, Spec, code, wait_until_gone};
use vmcell_wire::{
    Channel, Exit, ExitCause, FailureKind, Position, ProcessMode, Request, Selector, Stage, encode,
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
