//! The events of a stream.

use bytes::Bytes;
use vmcell_wire::{Attached, Channel, Event, Outcome};

/// An event of a stream.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Started {
        id: u32,
        pid: u32,
    },
    Attached(Attached),
    Data(Channel, Bytes),
    Gap(Channel, u64),
    /// An entry of a list.
    Listed(Listed),
    Connected,
    Closed(Closing),
}

/// An entry of a list, as the agent encoded it. It was checked when it arrived,
/// and is decoded by who requested the list.
#[derive(Clone, Debug)]
pub(crate) struct Listed(Bytes);

impl Listed {
    pub(super) fn new(payload: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(payload))
    }

    pub(super) fn payload(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn event(&self) -> Event<'_> {
        Event::decode(&self.0).unwrap_or(Event::Unknown)
    }
}

/// The outcome that closed a stream, as the agent encoded it. It was checked when
/// it arrived, and is decoded by who sent the request.
#[derive(Clone, Debug)]
pub(crate) struct Closing(Bytes);

impl Closing {
    pub(super) fn new(payload: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(payload))
    }

    /// Returns a closing with [`Outcome::Done`].
    pub(super) fn done() -> Self {
        Self(Outcome::Done.encode().unwrap_or_default().into())
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn outcome(&self) -> Outcome<'_> {
        Outcome::decode(&self.0).unwrap_or(Outcome::Unknown)
    }
}
