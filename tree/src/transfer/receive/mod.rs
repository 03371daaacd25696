//! Receives a stream of records, and writes it as a tree or an archive.

pub(super) mod atomic_file;
mod directory;
mod options;
mod receiver;
mod target;

pub use atomic_file::{AtomicFile, TempFileKind};
pub use options::{Destination, Ownership, ReceiveOptions, SpecialBits, TopSymlink};
pub use receiver::{Received, Receiver};
#[cfg(feature = "archive")]
pub(super) use target::Losses;
pub(super) use target::Target;
