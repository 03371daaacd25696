//! Whole trees on their way into a guest and out of it.
//!
//! ```text
//!  directory ─┐                                         ┌─> directory
//!             ├─> send ──> records, in pieces ──> Receiver
//!  archive  ──┘            (`vmcell_wire::files`)       └─> archive
//! ```
//!
//! One stream in either direction, converted as it goes: nothing is collected
//! and no archive is made on the way. All of this blocks, so it belongs on a
//! thread of its own; pieces go through a small channel.
//!
//! What comes from a guest cannot get out of the directory that was chosen for
//! it: only single names are used, through descriptors, and no link is followed.
//! That holds for the path of that directory too, since an earlier export may
//! have brought a link in it (`host_entry.rs`).

#[cfg(feature = "archive")]
mod archive;
mod budget;
mod error;
mod host_entry;
mod meta;
mod progress;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod xattrs;

#[cfg(feature = "archive")]
pub use archive::{ArchiveFormat, ArchiveProblem};
pub use budget::{TreeLimit, TreeLimits};
pub use error::TreeError;
pub use progress::{LeftOut, Tell, TreeProgress};
pub use receive::Received;
pub use receive::{Destination, Ownership, ReceiveOptions, Receiver, SpecialBits, TopSymlink};

pub use receive::{Scratch, Unfinished};
pub use send::Sent;
pub use send::{Gone, Known, Lookup, SendOptions, Sink, Source, send};
