//! Reads untrusted tar archives in one pass: old headers, POSIX's ustar and pax
//! formats, and GNU's long names and four formats of sparse files.
//!
//! The layout of a header block is that of the crate `tar`. Its reader is not
//! used, because it buffers names of any size, splits pax records at newlines,
//! and ignores the upper bytes of binary numbers. Here, memory is limited to one
//! block, headers of bounded size, and the map of a sparse file.
//!
//! ```
//! use vmcell_archive::{ArchiveReader, EntryKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut archive = tar::Builder::new(Vec::new());
//! let mut header = tar::Header::new_gnu();
//! header.set_mode(0o644);
//! header.set_size(6);
//! archive.append_data(&mut header, "note", &b"hello\n"[..])?;
//! let archive = archive.into_inner()?;
//!
//! let mut reader = ArchiveReader::new(&archive[..]);
//! let entry = reader.next_entry()?.ok_or("the archive is empty")?;
//! assert_eq!(reader.name(), b"note");
//! assert!(matches!(entry.kind, EntryKind::File { stored: 6, .. }));
//! let mut content = [0; 6];
//! reader.read_exact(&mut content)?;
//! assert_eq!(&content, b"hello\n");
//! assert!(reader.next_entry()?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! Names, link targets and attributes are returned as the archive states them:
//! a caller checks that a name does not lead outside of its destination. The
//! crates `vmcell-tree` and `vmcell-rootfs` share this one. Its API may change
//! with any release.

#![forbid(unsafe_code)]

mod entry;
mod error;
mod number;
mod pax;
mod reader;
mod sparse;

pub use entry::{Device, Entry, EntryKind, Time};
pub use error::ArchiveError;
pub use pax::PaxBuf;
pub use reader::{ArchiveReader, BLOCK};
pub use sparse::SparseMap;
