use std::{fmt, time::Duration};

use super::Signal;
use crate::vm::End;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Why it ended.
    pub cause: Cause,
    /// Processor time that it spent in user mode.
    pub user_time: Duration,
    /// Processor time that the guest's kernel spent on it.
    pub system_time: Duration,
    /// From its start to its end, by the guest's clock.
    pub wall_time: Duration,
    /// Its peak resident memory, in bytes.
    pub peak_memory: u64,
    /// How many bytes it wrote to standard output, read or not.
    pub stdout_bytes: u64,
    /// How many bytes it wrote to standard error, read or not.
    pub stderr_bytes: u64,
    /// Whether a descendant still held its outputs open when it had exited.
    /// They are closed half a second later, and output after that is lost.
    pub outputs_cut: bool,
    /// How many of its processes the OOM killer killed.
    pub oom_kills: u32,
    /// Whether all its descendants had ended too; `None` if unknown.
    ///
    /// The guest's kernel reports this for the command's cgroup, which contains
    /// all of them: no process can leave it by itself, and everything that a
    /// descendant starts is in it too. Cgroups that descendants create are
    /// below it.
    ///
    /// If the command was killed (on request, by a timeout, or because its
    /// stream was dropped), `Some(true)` means more: no process of the guest
    /// that started after the command is outside the cgroups of commands. If
    /// there is one, or if the guest has more than 4096 processes to search,
    /// the value is `None`.
    ///
    /// This holds against every user except root, and against a root that does
    /// not attack the agent. Root can enter the namespaces of another command
    /// and hide a process there, have the kernel start one (`core_pattern`), or
    /// modify the agent itself.
    pub tree_ended: Option<bool>,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It exited with this code.
    Code(u8),
    /// It was killed by this signal.
    Signal(Signal),
    /// It exceeded its time limit and was killed.
    Timeout,
    /// It exceeded its output limit and was killed.
    OutputLimit,
    /// It needed more memory than its limit or than there is, and the guest's
    /// kernel killed it.
    OutOfMemory,
    /// A host killed it.
    Killed,
    /// Its VM ended. No [`Exit`] has this cause, because nobody is left to
    /// report it: see [`Error::cause`](crate::Error::cause).
    VmEnded(End),
}

impl Cause {
    /// Returns a stable name of the kind of cause, for machines.
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
    /// Returns whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.cause == Cause::Code(0)
    }

    /// Returns the exit code, if it exited.
    pub fn code(&self) -> Option<u8> {
        match self.cause {
            Cause::Code(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the same exit with a cause that the host knows better.
    pub(super) fn with_cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    pub(crate) fn from_wire(exit: &vmcell_wire::Exit) -> Self {
        Self {
            cause: match exit.cause {
                vmcell_wire::ExitCause::Code(code) => Cause::Code(code),
                vmcell_wire::ExitCause::Signal(number) => {
                    Signal::from_number(number).map_or(Cause::Killed, Cause::Signal)
                }
                vmcell_wire::ExitCause::Timeout => Cause::Timeout,
                vmcell_wire::ExitCause::OutOfMemory => Cause::OutOfMemory,
                // A newer cause is only sent to hosts that know it.
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
            Self::Signal(signal) => write!(f, "signal {}", signal.number()),
            Self::Timeout => f.write_str("timed out"),
            Self::OutputLimit => f.write_str("printed too much"),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Killed => f.write_str("killed"),
            Self::VmEnded(end) => write!(f, "the VM is gone: {end}"),
        }
    }
}
