//! Reads and writes tar archives, plain or compressed, in one pass.
//!
//! The crate `vmcell-archive` reads the entries of untrusted archives; here
//! their names are checked. The writer receives a tree piece by piece, and
//! rejects a second entry of the same name.

mod compression;
mod entry_name;
mod format;
mod other_format;
mod path_map;
mod problem;
mod reader;
mod unpack;
mod writer;

pub use format::ArchiveFormat;
pub use other_format::OtherFormat;
pub use problem::ArchiveProblem;
pub(super) use unpack::send;
pub(super) use writer::ArchiveWriter;
