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
//! Archives that GNU tar and bsdtar extract are read, with these exceptions:
//!
//! - An archive must end with a block of zeros, unless the
//!   [end is optional](ArchiveReader::with_optional_end). Without it, it cannot be told
//!   from one that was truncated between two entries.
//! - Extension headers are limited to 256 KiB for an entry, and maps of sparse
//!   files to a million parts.
//! - A hard link whose header states a size is refused in archives with pax
//!   headers, because programs differ in whether data follows.
//! - Entries of unknown types are returned as such. Others extract them as files.
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
