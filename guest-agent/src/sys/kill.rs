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
    let group = leader.as_raw_nonzero().get().wrapping_neg();
    // SAFETY: a plain system call without memory.
    let result = unsafe { libc::kill(group, libc::c_int::from(signal)) };
    super::check(result.into()).map(|_| ())
}
