//! The protocol between vmcell's host library and its guest agent.
//!
//! A *link* is any reliable byte stream. It carries frames (see [`frame`]): an
//! 8-byte header and a payload. Each request of the host opens its own *stream*,
//! which carries the replies, data and the end of the request, so many requests
//! share one link.
//!
//! ```text
//! host                                   guest
//!  | Hello                                |
//!  |------------------------------------->|
//!  |                                Hello |
//!  |<-------------------------------------|
//!  | Open(7, Request::Start)              |
//!  |------------------------------------->|
//!  | Data(7, Stdin)*  End(7, Stdin)       |
//!  |------------------------------------->|
//!  |             Event(7, Event::Started) |
//!  |     Data(7, Stdout)*  End(7, Stdout) |
//!  |     Data(7, Stderr)*  End(7, Stderr) |
//!  |          Close(7, Outcome::Exited)   |
//!  |<-------------------------------------|
//!  | Ack(7)                               |
//!  |------------------------------------->|
//! ```
//!
//! A peer sends data only within the [`credit`] that the receiver granted.
//! Control payloads are postcard; data payloads are raw bytes.
//!
//! This crate does no I/O and treats its input as untrusted: the [`Decoder`]
//! accepts bytes in pieces of any size and never holds more than one control
//! payload. Decoded messages borrow from the frame, so decoding allocates no
//! memory for them.
//!
//! ```
//! use vmcell_wire::{Decoder, Item, Peer, Request, StreamId, encode};
//!
//! let stream = StreamId::new(7)?;
//! let mut bytes = Vec::new();
//! encode::open(&mut bytes, stream, &Request::Ping)?;
//!
//! let mut decoder = Decoder::new(Peer::Host);
//! let mut input = &bytes[..];
//! let item = decoder.decode(&mut input)?;
//! assert_eq!(item, Some(Item::Open { stream, request: Request::Ping }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `protocol` is on by default. Without it there are only [`limits`],
//! [patterns](pattern) and the [records of trees](files::TreeRecord), for programs
//! that talk to no agent.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

extern crate alloc;

#[cfg(feature = "protocol")]
pub mod boot;
#[cfg(feature = "protocol")]
pub mod credit;
#[cfg(feature = "protocol")]
mod decoder;
#[cfg(feature = "protocol")]
pub mod encode;
mod error;
#[cfg(feature = "protocol")]
mod event;
mod failure;
pub mod files;
pub mod frame;
#[cfg(feature = "protocol")]
mod hello;
pub mod limits;
mod message;
#[cfg(feature = "protocol")]
pub mod namespaces;
#[cfg(feature = "protocol")]
pub mod network;
#[cfg(feature = "protocol")]
mod outcome;
#[cfg(feature = "protocol")]
mod packed;
pub mod pattern;
#[cfg(feature = "protocol")]
mod process;
#[cfg(feature = "protocol")]
mod renew;
#[cfg(feature = "protocol")]
mod request;
#[cfg(feature = "protocol")]
mod request_properties;
#[cfg(feature = "protocol")]
pub mod reset;
#[cfg(feature = "protocol")]
mod rlimits;
#[cfg(feature = "protocol")]
mod secret;
#[cfg(feature = "protocol")]
pub mod service;
#[cfg(feature = "protocol")]
pub mod terminal;
#[cfg(feature = "protocol")]
mod trust_store;

#[cfg(feature = "protocol")]
pub use decoder::{Decoder, Item};
pub use error::WireError;
#[cfg(feature = "protocol")]
pub use event::{Attached, Event};
pub use failure::{Failure, FailureKind, Stage};
pub use frame::{Channel, Header, Kind, Peer, StreamId};
#[cfg(feature = "protocol")]
pub use hello::{Capabilities, GENERATION, Hello, MAGIC};
#[cfg(feature = "protocol")]
pub use outcome::Outcome;
#[cfg(feature = "protocol")]
pub use packed::{PackedStrings, PackedStringsBuf};
#[cfg(feature = "protocol")]
pub use process::{
    Attach, BufferedRange, CgroupLimits, Exit, ExitCause, Output, Position, ProcessEntry,
    ProcessMode, ProcessTree, Resume, Selector, Start, Stdin,
};
#[cfg(feature = "protocol")]
pub use renew::Renew;
#[cfg(feature = "protocol")]
pub use request::Request;
#[cfg(feature = "protocol")]
pub use request_properties::{Outputs, Recovery, StartEvent};
#[cfg(feature = "protocol")]
pub use rlimits::{Rlimit, Rlimits, RlimitsBuf};
#[cfg(feature = "protocol")]
pub use secret::SecretVariable;
#[cfg(feature = "protocol")]
pub use trust_store::TrustStore;
