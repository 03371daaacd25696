use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{LivenessProbe, ReadinessProbe};
use crate::{error::WireError, packed::PackedStrings, process::Start};

/// The definition of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec<'a> {
    /// The program. `keep` is the size of the log's buffer. Ticket, tag, standard
    /// input, mode and timeout are ignored; a host sets them to the same
    /// values in all specs, so that equal specs have equal bytes.
    #[serde(borrow)]
    pub start: Start<'a>,
    /// Whether it is restarted after its end.
    pub restart: Restart,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// The readiness probe. `None`: it is ready as soon as it runs.
    #[serde(borrow)]
    pub ready: Option<ReadinessProbe<'a>>,
    /// The liveness probe.
    #[serde(borrow)]
    pub alive: Option<LivenessProbe<'a>>,
    /// The services that must be ready before it is started.
    #[serde(borrow)]
    pub needs: PackedStrings<'a>,
}

impl<'a> Spec<'a> {
    /// Encodes the spec. Equal specs give equal bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if it cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_extend(self, Vec::new()).map_err(|_| WireError::TooLarge)
    }

    /// Decodes a spec.
    ///
    /// # Errors
    /// [`WireError::Malformed`]
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, WireError> {
        postcard::from_bytes(bytes).map_err(|_| WireError::Malformed)
    }
}

/// Whether a service that ended without a stop request is restarted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Whether it is restarted.
    pub policy: RestartPolicy,
    /// The pause before the first restart. It doubles with each restart, and is
    /// reset after a run that was ready for longer than `max_pause_ms`.
    pub pause_ms: u32,
    /// The longest pause.
    pub max_pause_ms: u32,
}

/// When a service is restarted. A service that was never ready is not restarted:
/// its first start has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// Never.
    Never,
    /// After any end but an exit with 0.
    OnFailure,
    /// After any end.
    Always,
}

/// How a service is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopPolicy {
    /// The signal number to send to its process group.
    pub signal: u8,
    /// The time after the signal until all its processes are killed.
    pub grace_ms: u32,
}
