use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
    process::{Pid, Signal, set_parent_process_death_signal},
};

use super::descriptors::close_all_but;

/// Forks a process that runs `child` with its own copy of the agent's memory,
/// and is killed when the agent ends. Of the agent's descriptors it has only
/// these.
///
/// The agent has one thread, so its memory is consistent in the copy.
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
    // leaves through `_exit`, and it only uses the given descriptors.
    unsafe { close_all_but(kept) };
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    // The agent may have ended before that.
    if tied.is_ok() && rustix::process::getppid() == Some(agent) {
        child(descriptors);
    }
    exit_immediately()
}

/// Exits at once with code 1, without running any exit handlers.
pub fn exit_immediately() -> ! {
    exit(1)
}

/// As [`exit_immediately`], with an exit code.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: the kernel frees everything that the process has.
    unsafe { libc::_exit(code.into()) }
}
