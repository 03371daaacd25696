//! Processes, observed from the other end of a link.

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Reply, RunningAgent, code, wait_until_gone};
use vmcell_wire::{Channel, ExitCause, FailureKind, Request, Stage, Stdin, encode};

#[test]
fn a_command_runs_and_its_outputs_come_back_apart() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec(&["sh", "-c", "echo out; echo err >&2; exit 3"]);
    let exit = host.exit(stream);
    assert_eq!(code(&exit), 3);
    assert_eq!(host.output(stream, Channel::Stdout), b"out\n");
    assert_eq!(host.output(stream, Channel::Stderr), b"err\n");
    assert_eq!((exit.stdout_bytes, exit.stderr_bytes), (4, 4));
    assert!(!exit.outputs_cut);
    assert!(exit.peak_rss_kib > 0 && exit.wall_us > 0);
}

#[test]
fn argv_reaches_the_program_as_it_is() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec(&["printf", "%s|", "a b", "", "$HOME", "*"]);
    assert_eq!(code(&host.exit(stream)), 0);
    assert_eq!(host.output(stream, Channel::Stdout), b"a b||$HOME|*|");
}

#[test]
fn the_environment_and_the_signals_are_clean() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script =
        "env; grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '; pwd";
    let stream = host.exec_in(&["sh", "-c", script], "/tmp", Stdin::Empty);
    host.exit(stream);
    let text = String::from_utf8(host.output(stream, Channel::Stdout).to_vec()).unwrap();
    assert!(text.contains("PATH=/usr/bin:/bin\n"), "{text}");
    assert!(
        !text.contains("CARGO"),
        "the agent's own environment leaks: {text}"
    );
    assert!(text.contains("SigBlk:\t0000000000000000\n"), "{text}");
    assert!(text.contains("SigIgn:\t0000000000000000\n"), "{text}");
    // 3 is the directory that ls itself reads.
    assert!(text.contains("0 1 2 3 "), "descriptors leak: {text}");
    assert!(text.ends_with("/tmp\n"), "{text}");
}

#[test]
fn a_program_that_does_not_exist_is_a_failure_and_not_an_exit() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    for (argv, cwd, expected) in [
        (
            &["no-such-program"][..],
            "",
            (FailureKind::NotFound, 2, Stage::Exec),
        ),
        (
            &["/no/such/program"],
            "",
            (FailureKind::NotFound, 2, Stage::Exec),
        ),
        (&["/etc/passwd"], "", (FailureKind::Denied, 13, Stage::Exec)),
        (&["/tmp"], "", (FailureKind::Denied, 13, Stage::Exec)),
        (
            &["true"],
            "/no/such",
            (FailureKind::NotFound, 2, Stage::WorkingDirectory),
        ),
        (&[], "", (FailureKind::Invalid, 0, Stage::Request)),
        (&[""], "", (FailureKind::Invalid, 0, Stage::Request)),
    ] {
        let stream = host.exec_in(argv, cwd, Stdin::Empty);
        let all = host.until(|reply| matches!(reply, Reply::Failed(..) | Reply::Exited(..)));
        let (kind, errno, stage) = expected;
        assert_eq!(all, [Reply::Failed(stream, kind, errno, stage)], "{argv:?}");
    }
}

#[test]
fn standard_input_flows_and_ends() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec_in(&["cat"], "", Stdin::Stream);
    host.write_stdin(stream, b"one ");
    host.write_stdin(stream, b"two");
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    assert_eq!(code(&host.exit(stream)), 0);
    assert_eq!(host.output(stream, Channel::Stdout), b"one two");
}

#[test]
fn more_input_than_a_pipe_holds_comes_back_whole() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec_in(&["cat"], "", Stdin::Stream);
    let chunk: Vec<u8> = (0..64 * 1024u32)
        .map(|index| index.to_le_bytes()[0])
        .collect();
    let mut credit = 256 * 1024;
    for _ in 0..64 {
        while credit < chunk.len() {
            for reply in host.until(|reply| matches!(reply, Reply::Credit(..))) {
                if let Reply::Credit(_, bytes) = reply {
                    credit += bytes as usize;
                }
            }
        }
        credit -= chunk.len();
        host.write_stdin(stream, &chunk);
    }
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    host.exit(stream);
    assert_eq!(host.output(stream, Channel::Stdout), chunk.repeat(64));
}

#[test]
fn input_for_a_program_that_does_not_read_is_dropped_and_its_credit_returned() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec_in(
        &["sh", "-c", "exec <&-; echo closed; sleep 60"],
        "",
        Stdin::Stream,
    );
    host.until(|reply| matches!(reply, Reply::Data(..)));
    for _ in 0..2 {
        host.write_stdin(stream, &vec![0; 128 * 1024]);
        host.until(|reply| matches!(reply, Reply::Credit(..)));
    }
}

#[test]
fn without_credit_nothing_more_is_sent_and_the_process_waits() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(10_000);
    host.credit_automatically = false;
    let stream = host.exec(&["yes"]);
    let count = |all: &[Reply]| -> usize {
        all.iter()
            .map(|reply| match reply {
                Reply::Data(_, _, count) => *count,
                _ => 0,
            })
            .sum()
    };
    // The answer to a ping comes after everything that was allowed before it.
    let mut received = 0;
    while received < 10_000 {
        received += count(&host.until(|reply| matches!(reply, Reply::Data(..))));
    }
    let ping = host.open(&Request::Ping);
    received += count(&host.until(|reply| *reply == Reply::Pong(ping)));
    assert_eq!(received, 10_000);

    host.grant(stream, Channel::Stdout, 5_000);
    while received < 15_000 {
        received += count(&host.until(|reply| matches!(reply, Reply::Data(..))));
    }
    assert_eq!(received, 15_000);
}

#[test]
fn cancel_ends_the_whole_process_group() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec(&["sh", "-c", "sleep 1000 & echo $!; wait"]);
    host.until(|reply| matches!(reply, Reply::Data(..)));
    let text = String::from_utf8(host.output(stream, Channel::Stdout).to_vec()).unwrap();
    let grandchild: u32 = text.trim().parse().unwrap();
    host.send(|out| encode::cancel(out, stream));
    assert_eq!(host.exit(stream).cause, ExitCause::Killed);
    wait_until_gone(grandchild);
}

#[test]
fn losing_the_link_ends_its_processes_and_no_others() {
    let agent = RunningAgent::with_short_grace();
    let mut leaving = agent.connect();
    let mut staying = agent.connect();
    let doomed = leaving.exec(&["sh", "-c", "echo $$; exec sleep 1000"]);
    leaving.until(|reply| matches!(reply, Reply::Data(..)));
    let text = String::from_utf8(leaving.output(doomed, Channel::Stdout).to_vec()).unwrap();
    let other = staying.exec_in(&["cat"], "", Stdin::Stream);
    leaving.close();
    wait_until_gone(text.trim().parse().unwrap());
    staying.write_stdin(other, b"still here");
    staying.send(|out| encode::end(out, other, Channel::Stdin));
    assert_eq!(code(&staying.exit(other)), 0);
    assert_eq!(staying.output(other, Channel::Stdout), b"still here");
}

#[test]
fn a_grandchild_that_holds_the_output_delays_the_exit_by_a_bounded_time() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec(&["sh", "-c", "sleep 1000 & echo $!; exit 4"]);
    let exit = host.exit(stream);
    assert_eq!(code(&exit), 4);
    assert!(exit.outputs_cut);
    let text = String::from_utf8(host.output(stream, Channel::Stdout).to_vec()).unwrap();
    // Without a cgroup the agent cannot find it.
    let grandchild = Pid::from_raw(text.trim().parse().unwrap()).unwrap();
    kill_process(grandchild, Signal::KILL).unwrap();
}

#[test]
fn a_slow_reader_loses_nothing_after_the_exit() {
    let agent = RunningAgent::start();
    // More than ring, pipe and window hold: the process has to wait for the
    // reader.
    let mut host = agent.connect_with_window(1000);
    let stream = host.exec(&["head", "-c", "3000000", "/dev/zero"]);
    let exit = host.exit(stream);
    assert_eq!(exit.stdout_bytes, 3_000_000);
    assert_eq!(host.output(stream, Channel::Stdout).len(), 3_000_000);
    assert!(!exit.outputs_cut);
}

#[test]
fn a_flood_does_not_hold_up_another_stream() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(4 * 1024 * 1024);
    let flood = host.exec(&["yes"]);
    for _ in 0..20 {
        let stream = host.exec(&["echo", "hi"]);
        let exit = host.exit(stream);
        assert_eq!(code(&exit), 0);
        assert_eq!(host.output(stream, Channel::Stdout), b"hi\n");
    }
    host.send(|out| encode::cancel(out, flood));
    assert_eq!(host.exit(flood).cause, ExitCause::Killed);
}

#[test]
fn power_off_asks_processes_to_end_first() {
    let mut agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.exec(&[
        "sh",
        "-c",
        "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
    ]);
    host.until(|reply| matches!(reply, Reply::Data(..)));
    host.open(&Request::PowerOff { grace_ms: 10_000 });
    host.until(|reply| *reply == Reply::PoweringOff);
    assert_eq!(host.output(stream, Channel::Stdout), b"ready\nasked\n");
    assert!(agent.child.wait().unwrap().success());
}

#[test]
fn power_off_kills_what_does_not_listen() {
    let mut agent = RunningAgent::start();
    let mut host = agent.connect();
    host.exec(&[
        "sh",
        "-c",
        "trap '' TERM; echo ready; while :; do sleep 1; done",
    ]);
    host.until(|reply| matches!(reply, Reply::Data(..)));
    host.open(&Request::PowerOff { grace_ms: 50 });
    host.until(|reply| *reply == Reply::PoweringOff);
    assert!(agent.child.wait().unwrap().success());
}
