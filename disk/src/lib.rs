//! Disks of stopped VMs, read without a VM, a mount or privileges: [`Disk`].
//!
//! ```no_run
//! # fn example() -> Result<(), vmcell_disk::DiskError> {
//! use vmcell_disk::{Disk, WalkOptions};
//!
//! let disk = Disk::open("stopped.qcow2")?;
//! println!("{}", vmcell_disk::printable(&disk.read("/etc/hostname")?));
//! for entry in disk.walk("/workspace", WalkOptions::new())? {
//!     match entry {
//!         Ok(entry) => println!("{} {}", entry.permissions(), entry.path.display()),
//!         Err(problem) => eprintln!("{problem}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Any raw or qcow2 image with an ext2, ext3 or ext4 file system will do. All of it
//! is synchronous.
//!
//! ```text
//!  Disk   list, read, find, grep, usage, export     Comparison of two
//!    │
//!  ext4   the file system, its journal replayed in memory
//!    │
//!  image  raw files, qcow2 chains, partitions
//! ```
//!
//! The crate `vmcell` uses the same types for the files of a running guest, and
//! re-exports this crate as `vmcell::disk`.
//!
//! A guest can write whatever it likes to its disk. So every operation keeps its
//! [limits](DiskLimits), and damage hides nothing else: it is returned as a
//! [`DiskProblem`] among the entries, or at the end. Names may hold escape
//! sequences: print them through [`printable`].

mod accounts;
mod budget;
mod choice;
mod compare;
mod content;
mod entry;
mod error;
mod export;
pub mod ext4;
mod find;
mod grep;
mod handle;
pub mod image;
mod limits;
mod listing;
mod options;
mod path;
mod read_at;
mod span;
mod traversal;
mod usage;
mod walk;

pub use compare::{Comparison, DiffSide, DiskChange, DiskChangeKind, DiskDiff, Owner};
pub use content::DiskFileReader;
pub use entry::Details;
pub use error::{DiskError, DiskProblem};
pub use export::{Export, Exported};
pub use find::{Find, Findings};
pub use grep::{Grep, GrepMatch, GrepMatches, MatchedLine};
pub use handle::Disk;
pub use limits::{DiskLimit, DiskLimits};
pub use options::DiskOptions;
pub use read_at::ReadAt;
pub use usage::{DirectoryUsage, DirectoryUsages};
#[cfg(feature = "archive")]
pub use vmcell_tree::transfer::ArchiveFormat;
pub use vmcell_tree::{
    Entry, EntryKind, ReadOptions, Usage, WalkOptions, diff, printable, printable_name,
    transfer::{Received, SkippedEntry, TreeError, TreeLimit, TreeLimits, TreeProgress},
};
pub use walk::DiskEntries;
