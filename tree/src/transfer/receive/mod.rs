//! A stream of records as a tree of the host.

mod folder;
mod options;
mod receiver;
mod target;
mod unfinished;

pub use options::{Destination, Ownership, ReceiveOptions, SpecialBits, TopSymlink};
pub use receiver::{Received, Receiver};
#[cfg(feature = "archive")]
pub(super) use target::Losses;
pub(super) use target::Target;
pub use unfinished::{Scratch, Unfinished};
