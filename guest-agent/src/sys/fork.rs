use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
    process::{Pid, Signal, set_parent_process_death_signal},
};

use super::{
    descriptors::close_all_but,
    signals::{SignalSet, change_mask},
};

/// Forks a process that runs `child` with its own copy of the agent's memory,
/// and is killed when the thread of the agent ends. Of the agent's descriptors
/// it has only these. All its signals are blocked, and its directory is `/`.
///
/// If the program has other threads, its allocator must be usable in the copy:
/// see the documentation of the crate.
pub(crate) fn fork<const N: usize>(
    descriptors: [OwnedFd; N],
    child: impl FnOnce([OwnedFd; N]),
) -> Result<Pid, Errno> {
    if let Some(pid) = fork_with_blocked_signals()? {
        return Ok(pid);
    }
    let _guard = ExitOnUnwind;
    let kept = descriptors
        .each_ref()
        .map(|descriptor| descriptor.as_raw_fd().unsigned_abs());
    // SAFETY: what the agent owns is never dropped here, because the child
    // leaves through `_exit`, and it only uses the given descriptors.
    unsafe { close_all_but(kept) };
    child(descriptors);
    exit_immediately()
}

/// Forks. Returns `None` in the child, which is tied to the agent.
fn fork_with_blocked_signals() -> Result<Option<Pid>, Errno> {
    let agent = rustix::process::getpid();
    // A signal handler of the program must not run in the copy.
    let blocked = change_mask(Some(SignalSet::MAX))?;
    // SAFETY: the child takes no lock but that of the allocator.
    let result = unsafe { libc::fork() };
    if result != 0 {
        let pid = super::check(result.into());
        change_mask(Some(blocked))?;
        pid?;
        return Pid::from_raw(result).ok_or(Errno::INVAL).map(Some);
    }
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    let in_root = rustix::process::chdir("/");
    // The agent may have ended before that.
    if tied.is_err() || in_root.is_err() || rustix::process::getppid() != Some(agent) {
        exit_immediately()
    }
    Ok(None)
}

/// Ends a forked process in which a panic unwinds, before anything that belongs
/// to the agent is dropped.
struct ExitOnUnwind;

impl Drop for ExitOnUnwind {
    fn drop(&mut self) {
        exit_immediately()
    }
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
