use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    hello::Capabilities,
    process::{Exec, Exit},
};

/// What a host asks for; it opens a stream.
///
/// Variants are only ever appended, and the fields of one never change: a new
/// shape is a new variant, and a [capability](crate::Capabilities) announces
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request<'a> {
    /// Answered with [`Outcome::Pong`] at once.
    Ping,
    /// Runs a program: [`Event::Started`], data, ends, [`Outcome::Exited`].
    #[serde(borrow)]
    Exec(Exec<'a>),
    /// Ends all processes, makes the disk clean and powers the VM off.
    PowerOff {
        /// How long processes may take to react to SIGTERM before SIGKILL.
        grace_ms: u32,
    },
}

impl Request<'_> {
    /// What an agent must be capable of to serve this.
    #[must_use]
    pub const fn capability(&self) -> Capabilities {
        match self {
            Self::Ping => Capabilities::NONE,
            Self::Exec(_) => Capabilities::EXEC,
            Self::PowerOff { .. } => Capabilities::POWER_OFF,
        }
    }
}

/// Something that happens on a stream before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event {
    /// The program was executed.
    Started {
        /// Its process id in the guest.
        pid: u32,
    },
}

/// How a stream ended; it closes the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// It could not be done.
    #[serde(borrow)]
    Failed(Failure<'a>),
    /// The answer to a ping.
    Pong,
    /// The process ended.
    Exited(Exit),
    /// The VM goes down now; nothing will follow on any link.
    PoweringOff,
}

impl Outcome<'_> {
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Failed(failure) => failure.is_valid(),
            Self::Pong | Self::Exited(_) | Self::PoweringOff => true,
        }
    }
}
