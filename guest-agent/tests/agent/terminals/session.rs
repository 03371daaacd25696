//! Programs from the view of a user at a terminal.

use vmcell_wire::{
    Channel,
    terminal::{Size, UnreadOutput},
};

use super::helpers::*;
use crate::client::{Host, Reply, RunningAgent, Spec, code};

/// Prints the size now and after every SIGWINCH.
const WATCHES_ITS_SIZE: &str = "
import os, signal
tell = lambda *_: os.write(1, b'size %d %d\\n' % tuple(os.get_terminal_size()))
signal.signal(signal.SIGWINCH, tell)
tell()
while True: signal.pause()
";

#[test]
fn a_shell_echoes_runs_and_exits_with_its_code() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (_, stream) = open_attached(&mut host, &Spec::bash());
    until_printed(&mut host, stream, "$ ", 1);
    command(&mut host, stream, "tty; X=state", 2);
    command(&mut host, stream, "echo ${X} [$((6 * 7))]", 3);
    host.write_stdin(stream, b"exit 7\n");
    let exit = host.exit(stream);
    assert_eq!(code(&exit), 7);
    let text = printed(&host, stream);
    assert!(text.contains("tty; X=state\n/dev/pts/"), "{text}");
    assert!(text.contains("\nstate [42]\n"), "{text}");
    let bytes = host.output(stream, Channel::Stdout).len();
    assert_eq!(exit.stdout_bytes, u64::try_from(bytes).unwrap());
    assert_eq!((exit.stderr_bytes, exit.outputs_cut), (0, false));
}

#[test]
fn both_outputs_of_a_program_are_its_terminal_in_order() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo one; echo two >&2; echo three";
    let (_, stream) = open_attached(&mut host, &Spec::shell(script));
    host.exit(stream);
    assert_eq!(printed(&host, stream), "one\ntwo\nthree\n");
}

#[test]
fn the_size_is_there_from_the_start_and_changes_are_told() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let size = Size {
        columns: 1000,
        rows: 1,
    };
    let spec = Spec::new(&["python3", "-c", WATCHES_ITS_SIZE]);
    let (id, _) = open_sized(&mut host, &spec, UnreadOutput::Block, size);
    let stream = attach_writer(&mut host, id, 0, 1);
    until_printed(&mut host, stream, "size 1000 1\n", 1);
    assert_eq!(look(&mut host, id).size, size);
    assert!(matches!(resize(&mut host, id, 132, 43), Reply::Done(_)));
    until_printed(&mut host, stream, "size 132 43\n", 1);
    let looked = look(&mut host, id).size;
    assert_eq!((looked.columns, looked.rows), (132, 43));
}

#[test]
fn the_interrupt_key_ends_a_whole_pipeline_and_not_the_shell() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, stream) = open_attached(&mut host, &Spec::bash());
    until_printed(&mut host, stream, "$ ", 1);
    host.write_stdin(stream, b"sleep 1000 | tail | tail\n");
    until_foreground(&mut host, id, "sleep");
    host.write_stdin(stream, b"\x03");
    until_printed(&mut host, stream, "$ ", 2);
    command(&mut host, stream, "echo ${PIPESTATUS[*]}", 3);
    let text = printed(&host, stream);
    assert!(text.contains("^C\n$ "), "{text}");
    assert!(text.contains("\n130 130 130\n"), "{text}");
}

#[test]
fn jobs_are_stopped_continued_and_fetched_back() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, stream) = open_attached(&mut host, &Spec::bash());
    until_printed(&mut host, stream, "$ ", 1);
    host.write_stdin(stream, b"sleep 1000\n");
    until_foreground(&mut host, id, "sleep");
    host.write_stdin(stream, b"\x1a");
    until_printed(&mut host, stream, "Stopped", 1);
    until_printed(&mut host, stream, "$ ", 2);
    until_foreground(&mut host, id, "bash");
    command(&mut host, stream, "bg", 3);
    command(&mut host, stream, "jobs", 4);
    assert!(printed(&host, stream).contains("Running"));
    host.write_stdin(stream, b"fg\n");
    until_foreground(&mut host, id, "sleep");
    host.write_stdin(stream, b"\x03");
    until_printed(&mut host, stream, "$ ", 5);
    command(&mut host, stream, "jobs; echo [$?]", 6);
    assert!(printed(&host, stream).ends_with("\n[0]\n$ "));
}

#[test]
fn a_look_tells_who_is_in_the_foreground_and_where() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, pid) = open(&mut host, &Spec::bash(), UnreadOutput::Block);
    let stream = attach_writer(&mut host, id, 0, 1);
    until_printed(&mut host, stream, "$ ", 1);
    assert_eq!(
        look(&mut host, id).foreground,
        Some((pid, "bash".into(), "/".into()))
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    command(&mut host, stream, &format!("cd {path}"), 2);
    assert_eq!(
        look(&mut host, id).foreground,
        Some((pid, "bash".into(), path.into()))
    );
    host.write_stdin(stream, b"(cd /usr && exec sleep 1000)\n");
    let looked = until_foreground(&mut host, id, "sleep");
    let (leader, _, cwd) = looked.foreground.unwrap();
    assert!(leader != pid && cwd == "/usr", "{leader} {cwd}");
}

#[test]
fn a_look_tells_whether_a_program_reads() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    // What is in the foreground itself, a child of it, by another name.
    for reads in [
        "exec cat",
        "cat; true",
        "exec cat < /dev/tty",
        "sleep 1000 | cat /dev/tty",
    ] {
        let spec = Spec::new(&["bash", "-c", reads]);
        let (id, _) = open(&mut host, &spec, UnreadOutput::Block);
        while !look(&mut host, id).is_read {}
    }
    for waits in [
        "echo there; exec sleep 1000",
        "echo there; exec cat < <(sleep 1000)",
        "trap '' TTIN; exec 0< /dev/null; echo there; while :; do :; done",
    ] {
        let spec = Spec::new(&["bash", "-c", waits]);
        let (id, _) = open(&mut host, &spec, UnreadOutput::Block);
        let stream = attach_writer(&mut host, id, 0, 1);
        until_printed(&mut host, stream, "there", 1);
        for _ in 0..20 {
            assert!(!look(&mut host, id).is_read, "{waits}");
        }
    }
}

#[test]
fn a_look_tells_a_password_prompt_from_a_line_and_a_key() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "
import getpass, sys, termios, tty
print('name:', flush=True); sys.stdin.readline()
word = getpass.getpass()
print('got', word, flush=True)
tty.setraw(0); print('key:', flush=True); sys.stdin.read(1)
";
    let (id, stream) = open_attached(&mut host, &Spec::new(&["python3", "-c", script]));
    let flags = |host: &mut Host| {
        let looked = look(host, id);
        (looked.canonical, looked.echo)
    };
    until_printed(&mut host, stream, "name:", 1);
    assert_eq!(flags(&mut host), (true, true));
    host.write_stdin(stream, b"me\n");
    until_printed(&mut host, stream, "Password: ", 1);
    assert_eq!(flags(&mut host), (true, false));
    host.write_stdin(stream, b"secret\n");
    until_printed(&mut host, stream, "key:", 1);
    assert_eq!(flags(&mut host), (false, false));
    let text = printed(&host, stream);
    assert!(text.contains("me\nPassword: \ngot secret\n"), "{text}");
}

#[test]
fn a_signal_reaches_the_foreground_alone() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, stream) = open_attached(&mut host, &Spec::bash());
    until_printed(&mut host, stream, "$ ", 1);
    command(&mut host, stream, "sleep 2000 & PID=$!", 2);
    host.write_stdin(stream, b"sleep 1000\n");
    until_foreground(&mut host, id, "sleep");
    assert!(matches!(
        signal(&mut host, id, libc::SIGTERM),
        Reply::Done(_)
    ));
    until_printed(&mut host, stream, "Terminated", 1);
    until_printed(&mut host, stream, "$ ", 3);
    command(&mut host, stream, "kill -0 $PID; echo [$?]; kill $PID", 4);
    assert!(printed(&host, stream).contains("\n[0]\n"));
}

#[test]
fn a_program_may_close_its_terminal_and_open_it_again() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    // Between the two, it waits for the test to check.
    let script = "T=$(tty); echo before; exec <&- >&- 2>&-; kill -STOP $$; echo after >$T";
    let (id, stream) = open_attached(&mut host, &Spec::shell(script));
    until_printed(&mut host, stream, "before", 1);
    let (pid, ..) = look(&mut host, id).foreground.unwrap();
    until_stopped(pid);
    assert!(matches!(
        signal(&mut host, id, libc::SIGCONT),
        Reply::Done(_)
    ));
    let exit = host.exit(stream);
    assert_eq!((code(&exit), exit.outputs_cut), (0, false));
    assert_eq!(printed(&host, stream), "before\nafter\n");
}

#[test]
fn a_descendant_that_keeps_the_terminal_holds_the_exit_up_for_a_while_only() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "trap '' HUP; sleep 1000 & echo $!; exit 3";
    let (_, stream) = open_attached(&mut host, &Spec::shell(script));
    let exit = host.exit(stream);
    assert_eq!((code(&exit), exit.outputs_cut), (3, true));
    let pid: i32 = printed(&host, stream).trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn what_was_printed_just_before_the_end_is_not_lost() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    for _ in 0..20 {
        let (_, stream) = open_attached(&mut host, &Spec::new(&["seq", "20000"]));
        let exit = host.exit(stream);
        let expected: String = (1..=20000).map(|number| format!("{number}\n")).collect();
        assert!(printed(&host, stream) == expected);
        assert!(!exit.outputs_cut);
    }
}

#[test]
fn erasing_takes_a_whole_character() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "read line; echo [$line]";
    let (_, stream) = open_attached(&mut host, &Spec::without_echo(script));
    until_printed(&mut host, stream, "ready", 1);
    host.write_stdin(stream, "aä\x7fb\n".as_bytes());
    host.exit(stream);
    assert!(printed(&host, stream).ends_with("[ab]\n"));
}
