//! A stream of records as a tree of the host.

mod folder;
mod options;
mod receiver;
mod target;
mod unfinished;

pub(crate) use options::{Destination, Ownership, ReceiveOptions, SpecialBits, TopSymlink};
pub use receiver::Received;
pub(crate) use receiver::Receiver;
#[cfg(feature = "archive")]
pub(super) use target::Losses;
pub(super) use target::Target;
#[cfg(feature = "archive")]
pub(crate) use unfinished::{Scratch, Unfinished};
