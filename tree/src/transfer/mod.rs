//! Transfers whole trees into a guest and out of it.
//!
//! ```text
//!  directory ─┐                                         ┌─> directory
//!             ├─> send ──> records, in pieces ──> Receiver
//!  archive  ──┘            (`vmcell_wire::files`)       └─> archive
//! ```
//!
//! A transfer is one stream of records that is converted on the fly: it needs
//! no temporary archive and does not hold a tree in memory. All functions
//! block, so call them on a thread of their own.
//!
//! A received tree cannot write outside of its destination: only single names
//! are used, relative to open directories, and no symbolic link is followed.
//! This includes links in the path of the destination, because an earlier
//! export may have created them (`host_entry.rs`).

#[cfg(feature = "archive")]
mod archive;
mod budget;
mod error;
mod host_entry;
mod meta;
mod platform;
mod progress;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod xattrs;

#[cfg(feature = "archive")]
pub use archive::{ArchiveFormat, ArchiveProblem, OtherFormat};
pub use budget::{TreeLimit, TreeLimits};
pub use error::TreeError;
pub use platform::open_search;
pub use progress::{ProgressCallback, SkippedEntry, TreeProgress};
pub use receive::Received;
pub use receive::{Destination, Ownership, ReceiveOptions, Receiver, SpecialBits, TopSymlink};

pub use receive::{AtomicFile, TempFileKind};
pub use send::Sent;
pub use send::{ExistingEntry, ExistingLookup, SendOptions, Sink, SinkClosed, Source, send};
