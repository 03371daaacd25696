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

pub mod boot;
pub mod credit;
mod decoder;
pub mod encode;
mod error;
mod event;
mod failure;
pub mod files;
pub mod frame;
mod hello;
pub mod limits;
pub mod namespaces;
mod outcome;
mod packed;
pub mod pattern;
mod process;
mod request;
mod request_properties;
pub mod reset;
mod rlimits;
pub mod service;
pub mod terminal;

pub use decoder::{Decoder, Item};
pub use error::WireError;
pub use event::{Attached, Event};
pub use failure::{Failure, FailureKind, Stage};
pub use frame::{Channel, Header, Kind, Peer, StreamId};
pub use hello::{Capabilities, GENERATION, Hello, MAGIC};
pub use outcome::Outcome;
pub use packed::{PackedStrings, PackedStringsBuf};
pub use process::{
    Attach, BufferedRange, CgroupLimits, Exit, ExitCause, Output, Position, ProcessEntry,
    ProcessMode, ProcessTree, Resume, Selector, Start, Stdin,
};
pub use request::Request;
pub use request_properties::{Outputs, Recovery, StartEvent};
pub use rlimits::{Rlimit, Rlimits, RlimitsBuf};
