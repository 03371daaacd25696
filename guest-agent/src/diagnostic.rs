use core::fmt;

use rustix::io::Errno;
use vmcell_wire::WireError;

/// Something that went wrong and that no host is told: for the log of the
/// program that runs the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Diagnostic {
    /// The peer of a link has violated the protocol. Its session is over.
    Violation {
        /// The number of the link.
        link: u32,
        /// What it did.
        error: WireError,
    },
    /// A link cannot be watched for writability, and may hang.
    Unwatched {
        /// The number of the link.
        link: u32,
        /// Why.
        error: Errno,
    },
    /// A connection was accepted and could not be used.
    NewLink(Errno),
    /// A child was reaped by another part of the program, which did not call
    /// [`Agent::child_ended`](crate::Agent::child_ended). Its exit status is
    /// reported as that of a process that was killed with SIGKILL.
    LostChild {
        /// The pid that it had.
        pid: i32,
    },
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation { link, error } => write!(f, "link {link}: {error}"),
            Self::Unwatched { link, error } => write!(f, "link {link}: {error}"),
            Self::NewLink(error) => write!(f, "new link: {error}"),
            Self::LostChild { pid } => {
                write!(f, "child {pid} was reaped without the agent's knowledge")
            }
        }
    }
}
