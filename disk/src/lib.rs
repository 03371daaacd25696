//! Reads ext2, ext3 and ext4 file systems in raw and qcow2 disk images, without
//! a VM, a mount or privileges.
//!
//! Use it to look into the disk of a stopped VM: list and read its files, search
//! them, copy them out, or compare them with another disk. The disk may come from
//! an untrusted guest. For the files of a *running* VM use the crate `vmcell`,
//! which has the same types and re-exports this crate as `vmcell::disk`.
//!
//! Everything is synchronous, and a [`Disk`] can be used from several threads at
//! once.
//!
//! # Reading files
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell_disk::{Disk, WalkOptions, printable};
//!
//! let disk = Disk::open("stopped.qcow2")?;
//! println!("{}", printable(&disk.read("/etc/hostname")?));
//! println!("{} bytes", disk.stat("/etc/hostname")?.size);
//! for entry in disk.list("/etc")? {
//!     println!("{} {:?}", entry.permissions(), entry.path);
//! }
//! for entry in disk.walk("/workspace", WalkOptions::new().exclude("*.o"))? {
//!     match entry {
//!         Ok(entry) => println!("{:?}", entry.path),
//!         Err(problem) => eprintln!("{problem}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Disk::reader`] streams large files, [`Disk::details`] and [`Disk::xattrs`]
//! return the rest of the metadata, and [`Disk::info`] describes the file system.
//! [`Disk::options`] selects a format, a partition, limits and ways to open a
//! damaged disk.
//!
//! # Searching
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell_disk::{Disk, EntryKind, Find, Grep, GrepMatch, printable};
//!
//! let disk = Disk::open("stopped.qcow2")?;
//! let large_logs = Find::new().name("*.log").kind(EntryKind::File).size(1 << 20..);
//! for entry in disk.find("/var", large_logs)? {
//!     println!("{:?}", entry?.path);
//! }
//! for found in disk.grep("/etc", &Grep::new("password *=").ignore_case())? {
//!     if let GrepMatch::Line(line) = found? {
//!         println!("{:?}:{}: {}", line.path, line.number, printable(&line.text));
//!     }
//! }
//! println!("{} bytes on disk", disk.usage("/home")?.allocated);
//! # Ok(())
//! # }
//! ```
//!
//! # Copying files to the host
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let disk = vmcell_disk::Disk::open("stopped.qcow2")?;
//! let exported = disk.export("/workspace/results", "./results").exclude("*.tmp").run()?;
//! for problem in &exported.problems {
//!     eprintln!("not copied: {problem}");
//! }
//! # #[cfg(feature = "archive")]
//! disk.export_archive("/home", "home.tar", vmcell_disk::ArchiveFormat::Tar).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! Archives need the feature `archive`, which is on by default. Archives that are
//! compressed with zstd, and images whose clusters are, need the feature `zstd`,
//! which is not: it compiles C code. The crate `vmcell` has both.
//!
//! # Comparing
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell_disk::{Comparison, DiffSide, Disk};
//!
//! let (base, child) = (Disk::open("base.ext4")?, Disk::open("child.qcow2")?);
//! let diff = Comparison::new(DiffSide::disk(&base, "/"), DiffSide::disk(&child, "/")).run()?;
//! for change in diff.changes() {
//!     println!("{:?} {:?}", change.kind(), change.path());
//! }
//! diff.write_patch(std::fs::File::create("changes.patch")?)?;
//! # Ok(())
//! # }
//! ```
//!
//! Blocks that both disks share through a common backing file are not read.
//!
//! # Images and file systems
//!
//! ```text
//!  Disk   list, read, find, grep, usage, export     Comparison of two
//!    │
//!  ext4   the file system, its journal replayed in memory
//!    │
//!  image  raw files, qcow2 chains, partitions
//! ```
//!
//! [`image`] can be used alone: it creates qcow2 layers on top of a base
//! ([`image::create_child`]), makes a base read-only ([`image::seal`]) and
//! converts a chain to one raw file ([`image::flatten`](image::flatten())).
//! [`ext4`] reads a file system from anything that implements [`ReadAt`], down to
//! inodes and blocks.
//!
//! # Untrusted disks
//!
//! A guest can write anything to its disk, so nothing on it is trusted:
//!
//! - Every operation has [limits](DiskLimits) on entries, depth, bytes, time and
//!   memory.
//! - Damage at one place does not hide the rest. It is returned as a
//!   [`DiskProblem`] between the entries, or in the result.
//! - Paths and symlinks never lead out of the disk, and an export writes only
//!   below its destination.
//! - Backing files are opened only in directories that the caller allows:
//!   [`DiskOptions::allow_backing`]. Set the [format](DiskOptions::format)
//!   of a raw disk that a guest has written, because its first bytes can be forged.
//! - Names and contents can contain escape sequences: print them through
//!   [`printable`], or with `{:?}`.
//!
//! An image that is in use is rejected, since its data would be inconsistent. While
//! a disk is open, its image files are locked, so that QEMU does not start on them.
//!
//! # Platforms
//!
//! Unix. It is tested on Linux: images also with the code that other systems use.
//! For FreeBSD and macOS, it is checked that the crate compiles.
//!
//! Whether an image is in use is known for certain on Linux only. Elsewhere, a
//! QEMU that starts at the moment at which an image is opened may not be noticed,
//! nor one that takes no locks, which is QEMU's default on systems that have no
//! locks of open file descriptions, such as FreeBSD (its option `locking`).
//!
//! # What it does not do
//!
//! - It never writes to a file system, and does not recover deleted files.
//! - It reads no other file systems, and no LVM, RAID or LUKS volumes.
//! - It reads no other image formats, and no qcow2 images with encryption, an
//!   external data file or extended L2 entries. Internal snapshots are ignored.
//!   A disk can have up to 64 layers and 64 TiB.
//! - It does not decrypt files. Encrypted names are returned in base64.
//! - It does not replay a journal on another device, nor fast commits. Such a file
//!   system is rejected if it needs recovery, unless
//!   [`DiskOptions::ignore_journal`] is set.

mod accounts;
mod budget;
mod compare;
mod content;
mod entry;
mod entry_filter;
mod error;
mod export;
pub mod ext4;
mod find;
mod grep;
mod handle;
pub mod image;
#[cfg(feature = "serde")]
mod json;
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
pub use entry::EntryDetails;
pub use error::{DiskError, DiskProblem};
pub use export::{Export, Exported};
pub use find::{Find, FindMatches};
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
