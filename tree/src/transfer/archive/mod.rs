//! Tar archives, plain or compressed, one pass in either direction.
//!
//! The reader is our own, because archives are as hostile as guests: it holds
//! no more than one block and bounded names, where readers for general use
//! gather whatever an archive calls a name. The same for the writer, which is
//! fed piece by piece and must know that no name comes twice.

mod compression;
mod entries;
mod entry_name;
mod format;
mod header;
mod names;
mod pax;
mod problem;
mod sparse;
mod unpack;
mod writer;

pub use format::ArchiveFormat;
pub use problem::ArchiveProblem;
pub(super) use unpack::send;
pub(super) use writer::ArchiveWriter;
