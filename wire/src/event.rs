use serde::{Deserialize, Serialize};

use crate::{
    error::WireError,
    hello::Capabilities,
    message::known_message,
    process::{Output, Position, ProcessEntry, ProcessTree},
    service::ServiceState,
};

/// An event on a stream before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program was executed.
    Started {
        /// The agent's id of the process.
        id: u32,
        /// The kernel's pid.
        pid: u32,
    },
    /// The stream is attached to the process.
    Attached(Attached),
    /// Bytes of an output were dropped. The data that follows on its channel
    /// comes after them.
    Gap {
        /// The output.
        output: Output,
        /// The number of dropped bytes.
        bytes: u64,
    },
    /// A process of the list.
    #[serde(borrow)]
    Listed(ProcessEntry<'a>),
    /// A service of the list.
    #[serde(borrow)]
    Service(ServiceState<'a>),
    /// The connection is established.
    Connected,
    /// A process of the list, with its descendants that outlived it.
    #[serde(borrow)]
    ListedTree(ProcessTree<'a>),
    /// An event that this version of the crate does not know. It is never sent,
    /// and a receiver ignores it.
    #[serde(skip)]
    Unknown,
}

impl<'a> Event<'a> {
    /// Decodes the payload of an event frame.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if it is incomplete or a field exceeds its limit.
    /// An event of a newer agent is not an error, but [`Unknown`](Self::Unknown).
    pub fn decode(payload: &'a [u8]) -> Result<Self, WireError> {
        let event = known_message(payload)?.unwrap_or(Self::Unknown);
        match event.is_valid() {
            true => Ok(event),
            false => Err(WireError::Malformed),
        }
    }

    /// Returns the capability of the hosts that know this event.
    #[must_use]
    pub const fn capability(&self) -> Capabilities {
        match self {
            // Every host of this generation.
            Self::Started { .. }
            | Self::Attached(_)
            | Self::Gap { .. }
            | Self::Listed(_)
            | Self::Unknown => Capabilities::NONE,
            Self::Service(_) => Capabilities::SERVICES,
            Self::Connected => Capabilities::PORTS,
            Self::ListedTree(_) => Capabilities::TREES,
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Listed(entry) => entry.is_valid(),
            Self::Service(state) => state.is_valid(),
            Self::ListedTree(tree) => tree.is_valid(),
            Self::Started { .. }
            | Self::Attached(_)
            | Self::Gap { .. }
            | Self::Connected
            | Self::Unknown => true,
        }
    }
}

/// The positions at which a stream attaches to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The agent's id of the process.
    pub id: u32,
    /// The kernel's pid.
    pub pid: u32,
    /// The offset at which standard output begins.
    pub stdout: u64,
    /// The same for standard error.
    pub stderr: u64,
    /// How many bytes of standard input the agent has received; later ones must
    /// be sent again. `None` if this stream does not provide the input.
    pub stdin: Option<Position>,
}
