//! kill(2), in forms that rustix lacks.

use rustix::{io::Errno, process::Pid};

/// Sends a signal to every process of the guest but PID 1, which calls this.
pub(crate) fn signal_all_processes(signal: libc::c_int) {
    // SAFETY: a plain system call without memory. It fails only if there is
    // no other process.
    let _ = unsafe { libc::kill(-1, signal) };
}

/// Sends any signal, including real-time ones, to a process group. Signal 0
/// only checks that the group exists.
pub(crate) fn signal_group(leader: Pid, signal: u8) -> Result<(), Errno> {
    signal_to(leader.as_raw_nonzero().get().wrapping_neg(), signal)
}

/// Sends a signal to one process, which must not have been reaped.
pub(crate) fn signal_process(process: Pid, signal: u8) -> Result<(), Errno> {
    signal_to(process.as_raw_nonzero().get(), signal)
}

fn signal_to(whom: libc::pid_t, signal: u8) -> Result<(), Errno> {
    // SAFETY: a plain system call without memory.
    let result = unsafe { libc::kill(whom, libc::c_int::from(signal)) };
    super::check(result.into()).map(|_| ())
}
