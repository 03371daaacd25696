use std::{fmt, time::Duration};

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
    /// Whether a descendant still held its outputs open when it had ended, so
    /// that they were cut off there.
    pub outputs_cut: bool,
    /// Whether all its descendants had ended too. None: unknown.
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
            Cause::Signal(_) => None,
        }
    }

    pub(crate) fn from_wire(exit: &vmcell_wire::Exit) -> Self {
        Self {
            cause: match exit.cause {
                vmcell_wire::Cause::Code(code) => Cause::Code(code),
                vmcell_wire::Cause::Signal(signal) => Cause::Signal(signal),
                // Only sent to hosts that announced that they know it.
                _ => Cause::Code(u8::MAX),
            },
            user_time: Duration::from_micros(exit.user_us),
            system_time: Duration::from_micros(exit.system_us),
            wall_time: Duration::from_micros(exit.wall_us),
            peak_memory: exit.peak_rss_kib.saturating_mul(1024),
            outputs_cut: exit.outputs_cut,
            tree_ended: exit.tree_ended,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}
