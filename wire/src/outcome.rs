use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    error::WireError,
    failure::{Failure, FailureKind, Stage},
    hello::Capabilities,
    message::known_message,
    process::Exit,
    service::ServiceState,
    terminal::TerminalState,
};

/// The result of a request, which closes its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The request failed.
    #[serde(borrow)]
    Failed(Failure<'a>),
    /// The answer to a ping.
    Pong,
    /// The process ended.
    Exited(Exit),
    /// The VM powers off now; nothing follows on any link. Hosts with the
    /// capability [`DISK_REPORT`](Capabilities::DISK_REPORT) get
    /// [`DiskClean`](Self::DiskClean) instead.
    PoweringOff,
    /// The program was executed and runs in the background.
    Spawned {
        /// The agent's id of the process.
        id: u32,
        /// The kernel's pid.
        pid: u32,
    },
    /// The request succeeded, without a result.
    Done,
    /// The list, or this part of it, is complete.
    EndOfList {
        /// Whether there are more entries after the last one.
        more: bool,
    },
    /// The state of a terminal. Hosts with the capability
    /// [`TERMINAL_READS`](Capabilities::TERMINAL_READS) get
    /// [`TerminalRead`](Self::TerminalRead) instead while a program reads it.
    #[serde(borrow)]
    Terminal(TerminalState<'a>),
    /// The state of a service.
    #[serde(borrow)]
    Service(ServiceState<'a>),
    /// All processes have ended, all data is written and the root is read-only.
    /// The VM powers off now; nothing follows on any link.
    DiskClean,
    /// The state of a terminal while a program is blocked in a read of it: read(2).
    #[serde(borrow)]
    TerminalRead(TerminalState<'a>),
    /// How many processes there are.
    Processes {
        /// Their number; each thread counts: `pids.current` of cgroups(7), version 2.
        count: u32,
    },
    /// An outcome that this version of the crate does not know. It is never sent.
    #[serde(skip)]
    Unknown,
}

impl<'a> Outcome<'a> {
    /// Decodes the payload of a close frame.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if it is incomplete or a field exceeds its limit.
    /// An outcome of a newer agent is not an error, but [`Unknown`](Self::Unknown).
    pub fn decode(payload: &'a [u8]) -> Result<Self, WireError> {
        let outcome = known_message(payload)?.unwrap_or(Self::Unknown);
        match outcome.is_valid() {
            true => Ok(outcome),
            false => Err(WireError::Malformed),
        }
    }

    /// Encodes the outcome as the payload of a close frame.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] for [`Unknown`](Self::Unknown).
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_allocvec(self).map_err(|_| WireError::TooLarge)
    }

    /// Returns the capability of the hosts that know this outcome.
    #[must_use]
    pub const fn capability(&self) -> Capabilities {
        match self {
            // Every host of this generation.
            Self::Failed(_)
            | Self::Pong
            | Self::Exited(_)
            | Self::PoweringOff
            | Self::Spawned { .. }
            | Self::Done
            | Self::EndOfList { .. }
            | Self::Unknown => Capabilities::NONE,
            Self::Terminal(_) => Capabilities::TERMINALS,
            Self::Service(_) => Capabilities::SERVICES,
            Self::DiskClean => Capabilities::DISK_REPORT,
            Self::TerminalRead(_) => Capabilities::TERMINAL_READS,
            Self::Processes { .. } => Capabilities::PROCESS_COUNT,
        }
    }

    /// Returns this outcome for a host with these capabilities: if it does not know
    /// it, an older one that says less.
    #[must_use]
    pub const fn for_host(self, host: Capabilities) -> Self {
        match self {
            _ if host.contains(self.capability()) => self,
            Self::DiskClean => Self::PoweringOff,
            Self::TerminalRead(state) => Self::Terminal(state).for_host(host),
            _ => Self::Failed(Failure::new(
                FailureKind::Unsupported,
                Stage::Request,
                "the host is too old for the answer to this request",
            )),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Failed(failure) => failure.is_valid(),
            Self::Terminal(state) | Self::TerminalRead(state) => state.is_valid(),
            Self::Service(state) => state.is_valid(),
            Self::Pong
            | Self::Exited(_)
            | Self::PoweringOff
            | Self::Spawned { .. }
            | Self::Done
            | Self::EndOfList { .. }
            | Self::DiskClean
            | Self::Processes { .. }
            | Self::Unknown => true,
        }
    }
}
