use rustix::process::Pid;
use vmcell_wire::ExitCause;

/// A reaped child, as wait4(2) reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// The pid that the child had.
    pub pid: i32,
    /// The wait status.
    pub status: i32,
    /// The resources that it has used.
    pub usage: ResourceUsage,
}

/// The resources that a child has used: getrusage(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// The processor time in user mode, in microseconds.
    pub user_us: u64,
    /// The processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// The largest amount of memory that it had at a time, in KiB.
    pub peak_rss_kib: u64,
}

impl From<&libc::rusage> for ResourceUsage {
    fn from(usage: &libc::rusage) -> Self {
        Self {
            user_us: microseconds(usage.ru_utime),
            system_us: microseconds(usage.ru_stime),
            peak_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        }
    }
}

/// A child that has ended, in the agent's own terms.
#[derive(Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) pid: Pid,
    pub(crate) cause: ExitCause,
    pub(crate) usage: ResourceUsage,
}

impl ChildExit {
    /// Returns how the child ended, or `None` if it was only stopped or
    /// continued.
    pub(crate) fn reaped(&self) -> Option<Reaped> {
        // Others than positive numbers make no sense, and rustix rejects them.
        if self.pid <= 0 {
            return None;
        }
        let status = self.status;
        let cause = if libc::WIFSIGNALED(status) {
            ExitCause::Signal(u8::try_from(libc::WTERMSIG(status)).unwrap_or(u8::MAX))
        } else if libc::WIFEXITED(status) {
            ExitCause::Code(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
        } else {
            return None;
        };
        Some(Reaped {
            pid: Pid::from_raw(self.pid)?,
            cause,
            usage: self.usage,
        })
    }
}

fn microseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_is_one() {
        let cause = |pid, status| {
            let usage = ResourceUsage::default();
            let reaped = ChildExit { pid, status, usage }.reaped();
            reaped.map(|reaped| reaped.cause)
        };
        assert_eq!(cause(7, 0x0300), Some(ExitCause::Code(3)));
        assert_eq!(cause(7, 0x000f), Some(ExitCause::Signal(15)));
        assert_eq!(cause(7, 0x0086), Some(ExitCause::Signal(6)));
        // Stopped, continued.
        assert_eq!(cause(7, 0x137f), None);
        assert_eq!(cause(7, 0xffff), None);
        assert_eq!(cause(0, 0), None);
        assert_eq!(cause(-1, 0), None);
    }
}
