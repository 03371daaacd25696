//! A reader for ext2, ext3 and ext4 file systems that are untrusted.
//!
//! ```text
//!  ReadAt ──Store──> metadata (cached) ──> Superblock, groups, Inode
//!           ^  ^                             ├─ Runs ──> read
//!    Overlay┘  └──── data (not cached)       ├─ Directory ──> lookup, Walk
//!  (journal)                                 └─ read_link, attributes
//! ```
//!
//! It is synchronous, never writes and needs no mount. Nothing is followed
//! without a bound, no memory is allocated only because the image claims a
//! size, and damage at one place does not hide the rest.
//!
//! The crate `ext4-view` was not used: it resolves each path from the root and
//! took sixty times as long for a listing; it returns no inode numbers, extents
//! or extended attributes, and allocates the sizes that an image claims.
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

mod acl;
mod attribute_area;
mod attributes;
mod checksum;
mod content;
mod damage;
mod directory;
mod directory_blocks;
mod entry;
mod error;
mod extents;
mod features;
mod fields;
mod file_system;
mod groups;
mod indirect;
mod info;
mod inline;
mod inode;
mod inode_check;
mod journal;
mod kind;
mod limits;
mod lookup;
mod options;
mod runs;
mod store;
mod superblock;
mod symlink;
mod system_zone;
#[cfg(test)]
mod tests;
mod timestamp;
mod walk;

pub use attributes::Attribute;
pub use damage::{Damage, DamageKind, Structure};
pub use directory::Directory;
pub use entry::DirectoryEntry;
pub use error::Error;
pub use file_system::Ext4;
pub(crate) use file_system::has_backup_superblock;
pub use info::{Info, RecordedError};
pub use inode::Inode;
pub use journal::JournalState;
pub use kind::Kind;
pub use limits::{Limit, Limits};
pub use lookup::SymlinkPolicy;
pub use options::{Checksums, Options, Replay, SuperblockCopy};
pub use runs::{Run, RunPlace, Runs};
pub use timestamp::Timestamp;
pub use walk::{Walk, WalkEntry, WalkError};
