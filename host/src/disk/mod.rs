//! Disks of stopped VMs, read without a VM: [`Disk`].
//!
//! ```no_run
//! # fn example() -> Result<(), vmcell::disk::DiskError> {
//! use vmcell::{disk::Disk, files::WalkOptions};
//!
//! let disk = Disk::open("stopped.qcow2")?;
//! println!("{}", vmcell::printable(&disk.read("/etc/hostname")?));
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
//! It is synchronous, and needs no VM, no mount and no privileges: any raw or
//! qcow2 image with an ext2, ext3 or ext4 file system will do.
//!
//! ```text
//!  Disk   list, read, find, grep, usage, export     Comparison of two
//!    │
//!  ext4   the file system, its journal replayed in memory
//!    │
//!  image  raw files, qcow2 chains, partitions
//! ```
//!
//! The words are those of a guest's [`files`](crate::files), and so are the
//! types: whoever shows a live tree can show a stopped one.
//!
//! A guest can write whatever it likes to its disk. So every operation keeps its
//! [limits](DiskLimits), and what is damaged hides nothing else: it comes as a
//! [`DiskProblem`] in between, or is told at the end. Names may hold escape
//! sequences: show them through [`printable`](crate::printable).

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
pub use walk::DiskEntries;
