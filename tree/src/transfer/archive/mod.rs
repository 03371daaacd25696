//! Reads and writes tar archives, plain or compressed, in one pass.
//!
//! The reader is written for untrusted archives: its memory is limited to one
//! block and names of bounded size, whereas general-purpose readers buffer
//! names of any size. The writer receives a tree piece by piece, and rejects a
//! second entry of the same name.

mod compression;
mod entry_name;
mod format;
mod header;
mod path_map;
mod pax;
mod problem;
mod reader;
mod sparse;
mod unpack;
mod writer;

pub use format::ArchiveFormat;
pub use problem::ArchiveProblem;
pub(super) use unpack::send;
pub(super) use writer::ArchiveWriter;
