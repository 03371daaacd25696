use std::{fmt, time::Duration};

use crate::vm::End;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Why it ended.
    pub cause: Cause,
    /// Processor time that it spent itself.
    pub user_time: Duration,
    /// Processor time that the guest's kernel spent for it.
    pub system_time: Duration,
    /// From its start to its end, by the guest's clock.
    pub wall_time: Duration,
    /// The most memory that it had resident, in bytes.
    pub peak_memory: u64,
    /// How many bytes it wrote to standard output, read or not.
    pub stdout_bytes: u64,
    /// How many bytes it wrote to standard error, read or not.
    pub stderr_bytes: u64,
    /// Whether a descendant still held its outputs open when it had ended, so
    /// that they were cut off there, after half a second.
    pub outputs_cut: bool,
    /// How many of its processes were ended for want of memory.
    pub oom_kills: u32,
    /// Whether all its descendants had ended too. None: unknown.
    ///
    /// The guest's kernel says so of the command's cgroup, in which all of them
    /// are: no process can leave it by itself, and none that a descendant starts
    /// is elsewhere. Cgroups that they make are below it.
    ///
    /// Where somebody has asked for the end (a kill, a timeout, a stream that was
    /// dropped), `Some(true)` says more: that no process of the guest that began
    /// after the command is outside of the commands' cgroups. If there is one,
    /// or if the guest has more than 4096 processes to look through, the answer
    /// is `None`.
    ///
    /// That is a proof against every user but root, and against a root that does
    /// not attack the agent: root can enter the namespaces of another command and
    /// hide a process there, have the kernel start one (`core_pattern`), or
    /// change the agent itself.
    pub tree_ended: Option<bool>,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It exited with this code.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
    /// It took too long, and was ended.
    Timeout,
    /// It printed too much, and was ended.
    OutputLimit,
    /// It needed more memory than it may have or than there is, and the
    /// guest's kernel ended it.
    OutOfMemory,
    /// A host ended it.
    Killed,
    /// Its VM ended. No [`Exit`] says so: nobody is left to tell. See
    /// [`Error::cause`](crate::Error::cause).
    VmEnded(End),
}

impl Cause {
    /// A name for the kind of cause that never changes, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Code(_) => "code",
            Self::Signal(_) => "signal",
            Self::Timeout => "timeout",
            Self::OutputLimit => "output-limit",
            Self::OutOfMemory => "out-of-memory",
            Self::Killed => "killed",
            Self::VmEnded(_) => "vm-ended",
        }
    }
}

impl Exit {
    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.cause == Cause::Code(0)
    }

    /// The exit code, if it exited.
    pub fn code(&self) -> Option<u8> {
        match self.cause {
            Cause::Code(code) => Some(code),
            _ => None,
        }
    }

    /// The same end, for a reason that the host knows better.
    pub(super) fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    pub(crate) fn from_wire(exit: &vmcell_wire::Exit) -> Self {
        Self {
            cause: match exit.cause {
                vmcell_wire::Cause::Code(code) => Cause::Code(code),
                vmcell_wire::Cause::Signal(signal) => Cause::Signal(signal),
                vmcell_wire::Cause::Timeout => Cause::Timeout,
                vmcell_wire::Cause::OutOfMemory => Cause::OutOfMemory,
                // What is not known here is only sent to hosts that know it.
                _ => Cause::Killed,
            },
            user_time: Duration::from_micros(exit.user_us),
            system_time: Duration::from_micros(exit.system_us),
            wall_time: Duration::from_micros(exit.wall_us),
            peak_memory: exit.peak_rss_kib.saturating_mul(1024),
            stdout_bytes: exit.stdout_bytes,
            stderr_bytes: exit.stderr_bytes,
            outputs_cut: exit.outputs_cut,
            oom_kills: exit.oom_kills,
            tree_ended: exit.tree_ended,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Timeout => f.write_str("timed out"),
            Self::OutputLimit => f.write_str("printed too much"),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Killed => f.write_str("killed"),
            Self::VmEnded(end) => write!(f, "the VM is gone: {end}"),
        }
    }
}
