//! Children of the agent and children of the program beside each other.

use std::{io::Read, str};

use rustix::process::{Pid, Signal, kill_process};
use vmcell_wire::{Channel, ExitCause, FailureKind, Request, Selector, Stage};

use crate::{
    client::{Reply, RunningAgent, Spec, code, wait_until_gone},
    features::stat_root,
    program::Mode,
    running_program::{PARENT, RunningProgram, STATE, command, field},
};

pub(crate) fn commands_and_children_of_the_program_end_with_their_own_status(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let host = &mut program.host;
    let streams: Vec<_> = (0..20)
        .map(|number| host.start(&Spec::shell(&format!("exit {number}"))))
        .collect();
    for (stream, number) in streams.into_iter().zip(0..) {
        let exit = host.exit(stream);
        assert_eq!(code(&exit), number);
        assert!(exit.peak_rss_kib > 0);
    }
    // One that is stopped has not ended.
    let stream = host.start(&Spec::shell(
        "(sleep 0.1; kill -CONT $$) & kill -STOP $$; exit 3",
    ));
    assert_eq!(code(&host.exit(stream)), 3);
    program.check_own_children();
}

/// The program ignores SIGPIPE, as Rust's programs do, and SIGHUP. It blocks two
/// other signals, and is in another directory.
pub(crate) fn commands_inherit_nothing_of_the_program(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let script = "pwd; grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd";
    let (exit, output) = program.host.run(&Spec::shell(script));
    assert_eq!(code(&exit), 0);
    let none = "0000000000000000";
    // The last descriptor is that of the listed directory.
    let expected = format!("/\nSigBlk:\t{none}\nSigIgn:\t{none}\n0\n1\n2\n3\n");
    assert_eq!(output, expected);
    let stream = program
        .host
        .exec(&["sh", "-c", "kill -PIPE $$; echo not ended"]);
    assert_eq!(program.host.exit(stream).cause, ExitCause::Signal(13));
    program.check_own_children();
}

pub(crate) fn many_commands_at_once_leave_nothing_behind(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let before = program.descriptors();
    let spec = || Spec::shell("echo ready; read code; exit $code").with_stdin();
    let streams: Vec<_> = (0..64).map(|_| program.host.start(&spec())).collect();
    for stream in &streams {
        program.host.until_bytes(*stream, b"ready\n".len());
    }
    assert_eq!(program.commands().len(), streams.len());
    for (stream, number) in streams.iter().zip(0..64u8).rev() {
        let line = format!("{number}\n");
        program.host.write_stdin(*stream, line.as_bytes());
    }
    for (stream, number) in streams.iter().zip(0..64u8) {
        assert_eq!(code(&program.host.exit(*stream)), number);
    }
    program.until(|program| program.commands().is_empty());
    program.until(|program| program.descriptors() <= before);
    program.check_own_children();
}

pub(crate) fn a_command_that_ends_by_a_signal_reports_it(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let host = &mut program.host;
    let aborted = host.exec(&["sh", "-c", "kill -ABRT $$"]);
    assert_eq!(host.exit(aborted).cause, ExitCause::Signal(6));
    let late = host.start(&Spec::new(&["sleep", "1000"]).with(|spec| spec.start.timeout_ms = 1));
    assert_eq!(host.exit(late).cause, ExitCause::Timeout);
    // Its descendant dies with it.
    let spec = Spec::shell("sleep 1000 & echo $!; wait");
    let killed = host.start(&spec);
    let descendant = first_pid(&mut program, killed);
    let process = Selector::Tag(&spec.tag);
    program.host.ask(&Request::Kill { process });
    assert_eq!(program.host.exit(killed).cause, ExitCause::Killed);
    wait_until_gone(descendant);
    program.check_own_children();
}

pub(crate) fn a_command_that_cannot_be_executed_leaves_nothing_behind(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let before = program.descriptors();
    for (path, kind) in [
        ("/no/such/program", FailureKind::NotFound),
        ("/etc/passwd", FailureKind::Denied),
    ] {
        for spec in [Spec::new(&[path]), Spec::new(&[path]).background()] {
            let refused = program.host.start_refused(&spec);
            assert_eq!(refused, (kind, Stage::Exec));
        }
    }
    let (exit, _) = program.host.run(&Spec::new(&["true"]));
    assert_eq!(code(&exit), 0);
    program.until(|program| program.commands().is_empty());
    program.until(|program| program.descriptors() <= before);
    program.check_own_children();
}

pub(crate) fn a_descendant_outlives_its_command(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let stream = program
        .host
        .exec(&["sh", "-c", "sleep 1000 & echo $!; exit 4"]);
    let descendant = first_pid(&mut program, stream);
    let exit = program.host.exit(stream);
    assert_eq!(code(&exit), 4);
    // It keeps the output open, which the agent does not wait for.
    assert!(exit.outputs_cut);
    assert_eq!(exit.tree_ended, None);
    program.until(|program| program.commands().is_empty());
    assert_eq!(field(descendant, STATE).unwrap(), "S");
    kill_process(pid(descendant), Signal::KILL).unwrap();
    wait_until_gone(descendant);
    program.check_own_children();
}

pub(crate) fn a_killed_worker_is_replaced(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    if !stat_root(&mut program) {
        return;
    }
    let [worker] = program.forks()[..] else {
        panic!("not one worker: {:?}", program.forks());
    };
    kill_process(pid(worker), Signal::KILL).unwrap();
    program.until(|_| field(worker, STATE).is_none());
    stat_root(&mut program);
    assert_eq!(program.forks().len(), 1);
    program.check_own_children();
}

/// Another process ends the command, so that only its pidfd tells the agent.
pub(crate) fn the_end_of_a_command_without_pipes_is_noticed() {
    let mut program = RunningProgram::start(Mode::Apart);
    let host = &mut program.host;
    let script = "exec <&- >&- 2>&-; exec sleep 1000";
    let stream = host.start(&Spec::shell(script));
    let has_ended =
        |reply: &Reply| matches!(reply, Reply::End(id, Channel::Stderr) if *id == stream);
    host.first(has_ended);
    let Reply::Started(_, _, command) =
        host.first(|reply| matches!(reply, Reply::Started(id, ..) if *id == stream))
    else {
        panic!("not started");
    };
    kill_process(pid(command), Signal::KILL).unwrap();
    assert_eq!(host.exit(stream).cause, ExitCause::Signal(9));
    program.check_own_children();
}

pub(crate) fn orphans_that_become_children_of_the_program_are_left_to_it() {
    let mut program = RunningProgram::start(Mode::Subreaper);
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!; exit 4";
    let stream = program.host.exec(&["sh", "-c", script]);
    assert_eq!(code(&program.host.exit(stream)), 4);
    let orphan = first_pid(&mut program, stream);
    kill_process(pid(orphan), Signal::KILL).unwrap();
    wait_until_gone(orphan);
    for _ in 0..20 {
        let (exit, _) = program.host.run(&Spec::new(&["true"]));
        assert_eq!(code(&exit), 0);
    }
    assert_eq!(field(orphan, STATE).unwrap(), "Z");
    assert_eq!(field(orphan, PARENT).unwrap(), program.pid().to_string());
    program.check_own_children();
}

pub(crate) fn commands_end_although_the_program_takes_their_status() {
    let mut program = RunningProgram::start(Mode::Stolen);
    for _ in 0..5 {
        let stream = program.host.exec(&["true"]);
        program.host.exit(stream);
    }
    program.check_own_children();
}

pub(crate) fn killing_all_leaves_no_child_behind() {
    let mut agent = RunningAgent::run(&mut command(Mode::KillAll, "HUP"));
    assert!(agent.child.wait().unwrap().success());
}

/// The kernel would reap all children of such a program itself.
pub(crate) fn a_program_that_ignores_sigchld_is_told_so() {
    for mode in [Mode::Apart, Mode::HandedOver] {
        let mut agent = RunningAgent::run(&mut command(mode, "CHLD"));
        let mut printed = String::new();
        let mut output = agent.child.stdout.take().unwrap();
        output.read_to_string(&mut printed).unwrap();
        assert_eq!(
            printed,
            "not built: SIGCHLD is ignored, or handled with SA_NOCLDWAIT\n"
        );
    }
}

/// Returns the pid that a command prints first.
fn first_pid(program: &mut RunningProgram, stream: vmcell_wire::StreamId) -> u32 {
    let host = &mut program.host;
    while !host.output(stream, Channel::Stdout).ends_with(b"\n") {
        host.until(|reply| matches!(reply, Reply::Data(id, ..) if *id == stream));
    }
    let text = str::from_utf8(host.output(stream, Channel::Stdout)).unwrap();
    text.trim().parse().unwrap()
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.try_into().unwrap()).unwrap()
}
