//! Runs that end before their command does, and that nothing is left of them.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    processes::{Process, unix_sockets},
    vmcell::{READY_AND_WAIT, Vmcell},
};

const A_SECOND: Duration = Duration::from_secs(1);

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn a_signal_ends_the_vm_and_is_told_as_shells_tell_it() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut running = Vmcell::run([], READY_AND_WAIT).start();
        assert_eq!(running.line(), "ready\n");
        let vmm = Process::only_child_of(running.pid());
        running.signal(signal);
        assert!(running.ends_within(TIMEOUT), "{signal:?} does not end it");
        assert!(vmm.ends_within(TIMEOUT), "the VMM outlives {signal:?}");
        let ended = running.finish();
        assert_eq!(ended.code(), code);
        assert_eq!((ended.stdout(), ended.stderr.as_str()), ("", ""));
    }
}

#[test]
fn a_timeout_ends_the_command() {
    // Long enough for a shell to start on a busy machine.
    let mut running = Vmcell::run(["--timeout-seconds", "8"], READY_AND_WAIT).start();
    assert_eq!(running.line(), "ready\n");
    let ready = Instant::now();
    let vmm = Process::only_child_of(running.pid());
    let ended = running.finish();
    ended.assert_failed(124, "timed out after 8 s\n");
    let limit = Duration::from_secs(8) + TIMEOUT;
    assert!(ready.elapsed() < limit, "{:?}", ready.elapsed());
    assert!(vmm.ends_within(TIMEOUT));
}

#[test]
fn nothing_is_left_of_a_program_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Vmcell::run([], READY_AND_WAIT)
        .env("TMPDIR", folder.path())
        .start();
    assert_eq!(running.line(), "ready\n");
    let vmm = Process::only_child_of(running.pid());
    assert!(vmm.arguments().contains("-name vmcell-"));
    let sockets = vmm.sockets();
    assert!(sockets.len() >= 3, "{sockets:?}");
    let with_address: Vec<_> = unix_sockets()
        .into_iter()
        .filter(|socket| sockets.contains(&socket.inode) && socket.path.is_some())
        .collect();
    assert!(with_address.is_empty(), "{with_address:?}");

    running.signal(Signal::KILL);
    assert!(vmm.ends_within(TIMEOUT), "the VMM outlives the program");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let folder = folder.path().to_str().unwrap();
    for socket in unix_sockets() {
        assert!(!sockets.contains(&socket.inode), "{socket:?}");
        assert!(
            socket
                .path
                .as_ref()
                .is_none_or(|path| !path.contains(folder)),
            "{socket:?}"
        );
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run() {
    let mut running = Vmcell::run([], ["yes"]).start();
    assert_eq!(running.line(), "y\n");
    let vmm = Process::only_child_of(running.pid());
    running.close_stdout();
    assert!(running.ends_within(TIMEOUT), "it did not end");
    assert!(vmm.ends_within(TIMEOUT));
    assert_ne!(running.finish().code(), 0);
}

/// Like `vmcell run -- yes | less` without scrolling.
#[test]
fn a_reader_that_does_not_read_keeps_no_signal_and_no_timeout_from_ending_the_run() {
    let mut signalled = Vmcell::run([], ["yes"]).start();
    assert_eq!(signalled.line(), "y\n");
    let mut timed = Vmcell::run(["--timeout-seconds", "1"], ["yes"]).start();
    assert_eq!(timed.line(), "y\n");
    assert!(timed.ends_within(A_SECOND + TIMEOUT), "no timeout");
    assert_eq!(timed.finish().code(), 124);
    // By now the first one has filled its pipe.
    signalled.signal(Signal::TERM);
    assert!(signalled.ends_within(TIMEOUT), "it ignores the signal");
    assert_eq!(signalled.finish().code(), 143);
}
