use alloc::string::String;
use core::fmt;

use rustix::io::Errno;
use vmcell_wire::WireError;

/// Something that went wrong and that no host is told: for the log of the
/// program that runs the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// A program wanted to reach something that the host's policy does not allow.
    NotAllowed {
        /// The name or address.
        target: String,
        /// The port; `None` if the program only looked up the name.
        port: Option<u16>,
    },
    /// Programs do not find the agent when they look up names, because their
    /// `/etc/resolv.conf` cannot be replaced.
    ResolverFile(Errno),
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
            Self::NotAllowed { target, port } => {
                write!(f, "not allowed by policy: {target}")?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Self::ResolverFile(error) => {
                write!(f, "/etc/resolv.conf cannot be replaced: {error}")
            }
        }
    }
}
