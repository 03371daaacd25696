use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Alive, Ready};
use crate::{error::WireError, packed::Packed, process::Start};

/// What a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec<'a> {
    /// The program. `keep` is how much of the log is kept. Ticket, tag, standard
    /// input, lifetime and timeout mean nothing; a host makes them the same in
    /// all specs, so that two specs are equal if their bytes are.
    #[serde(borrow)]
    pub start: Start<'a>,
    /// Whether it is started again after its end.
    pub restart: Restart,
    /// How it is ended.
    pub stop: StopBy,
    /// When it is ready. None: as soon as it runs.
    #[serde(borrow)]
    pub ready: Option<Ready<'a>>,
    /// When it is not alive any more, though it runs.
    #[serde(borrow)]
    pub alive: Option<Alive<'a>>,
    /// The services that must be ready before it is started.
    #[serde(borrow)]
    pub needs: Packed<'a>,
}

impl<'a> Spec<'a> {
    /// The spec as bytes, to be kept. The same spec gives the same bytes.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        postcard::to_extend(self, Vec::new()).map_err(|_| WireError::TooLarge)
    }

    /// The spec that these bytes are.
    ///
    /// # Errors
    /// They are none.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, WireError> {
        postcard::from_bytes(bytes).map_err(|_| WireError::Malformed)
    }
}

/// Whether a service that has ended by itself is started again, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Whether.
    pub policy: RestartPolicy,
    /// The pause before the first restart. Each one doubles it. After a run
    /// that was ready for longer than `max_pause_ms` it is this one again.
    pub pause_ms: u32,
    /// The longest pause.
    pub max_pause_ms: u32,
}

/// After which end a service is started again. One that was never ready is not:
/// its first start has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// After none.
    Never,
    /// After any but an exit with 0.
    OnFailure,
    /// After any.
    Always,
}

/// How a service is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopBy {
    /// The kernel's number of the signal that its process group is sent.
    pub signal: u8,
    /// How long it may take then before all its processes are killed.
    pub grace_ms: u32,
}
