use core::mem::MaybeUninit;

use rustix::{io::Errno, process::Pid};
use vmcell_wire::ExitCause;

/// A reaped child and its resource usage.
pub(crate) struct Reaped {
    pub(crate) pid: Pid,
    pub(crate) cause: ExitCause,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) peak_rss_kib: u64,
}

/// Reaps one ended child. `None`: there are children, and all of them run.
///
/// rustix has no wait that returns resource usage, hence wait4(2).
///
/// # Errors
/// `ECHILD` if there is no child at all.
pub(crate) fn reap() -> Result<Option<Reaped>, Errno> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both places are valid for the kernel to write to.
    let result = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    super::check(result.into())?;
    let Some(pid) = Pid::from_raw(result) else {
        return Ok(None);
    };
    // SAFETY: zeroed is a valid rusage, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    let cause = if libc::WIFSIGNALED(status) {
        ExitCause::Signal(u8::try_from(libc::WTERMSIG(status)).unwrap_or(u8::MAX))
    } else {
        ExitCause::Code(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
    };
    Ok(Some(Reaped {
        pid,
        cause,
        user_us: microseconds(usage.ru_utime),
        system_us: microseconds(usage.ru_stime),
        peak_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }))
}

fn microseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(rest)
}
