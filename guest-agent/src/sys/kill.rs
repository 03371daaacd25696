//! kill(2), where rustix does not offer it.

use rustix::{io::Errno, process::Pid};

/// Sends a signal to every process of the guest but PID 1, which calls this.
pub(crate) fn signal_everyone(signal: libc::c_int) {
    // SAFETY: a plain system call without memory. It fails only if there is
    // nobody else.
    let _ = unsafe { libc::kill(-1, signal) };
}

/// Sends any signal, real-time ones too, to a process group. 0 only looks
/// whether it is there.
pub(crate) fn signal_group(leader: Pid, signal: u8) -> Result<(), Errno> {
    signal_to(leader.as_raw_nonzero().get().wrapping_neg(), signal)
}

/// The same to one process, which must not have been reaped.
pub(crate) fn signal_process(process: Pid, signal: u8) -> Result<(), Errno> {
    signal_to(process.as_raw_nonzero().get(), signal)
}

fn signal_to(whom: libc::pid_t, signal: u8) -> Result<(), Errno> {
    // SAFETY: a plain system call without memory.
    let result = unsafe { libc::kill(whom, libc::c_int::from(signal)) };
    super::check(result.into()).map(|_| ())
}
