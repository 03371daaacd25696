use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
    process::{Pid, Signal, set_parent_process_death_signal},
};

use super::descriptors::close_all_but;

/// Makes a process that goes on with `child`, with its own copy of the agent's
/// memory, and ends with the agent. Of the agent's descriptors it has only
/// these.
///
/// The agent has one thread, so whatever it was doing is complete in the copy.
pub(crate) fn fork<const N: usize>(
    descriptors: [OwnedFd; N],
    child: impl FnOnce([OwnedFd; N]),
) -> Result<Pid, Errno> {
    let agent = rustix::process::getpid();
    // SAFETY: there is one thread, so no lock is held that the child would
    // wait for.
    let result = unsafe { libc::fork() };
    if result != 0 {
        super::check(result.into())?;
        return Pid::from_raw(result).ok_or(Errno::INVAL);
    }
    let kept = descriptors
        .each_ref()
        .map(|descriptor| descriptor.as_raw_fd().unsigned_abs());
    // SAFETY: what the agent owns is never dropped here, because the child
    // leaves through `_exit`, and it uses nothing but what it is given.
    unsafe { close_all_but(kept) };
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    // The agent may have ended before that.
    if tied.is_ok() && rustix::process::getppid() == Some(agent) {
        child(descriptors);
    }
    end_this_process()
}

/// Ends it at once: nothing of the agent's is run at its end.
pub fn end_this_process() -> ! {
    exit(1)
}

/// As [`end_this_process`], with an exit code.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: the kernel gives back all that the process has.
    unsafe { libc::_exit(code.into()) }
}
