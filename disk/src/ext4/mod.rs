//! A reader of ext2, ext3 and ext4 that trusts nothing.
//!
//! ```text
//!  ReadAt ──Store──> metadata (cached) ──> Superblock, groups, Inode
//!           ^  ^                             ├─ Runs ──> read
//!    Overlay┘  └──── data, straight          ├─ Directory ──> lookup, Walk
//!  (journal)                                 └─ link, attributes
//! ```
//!
//! It is pure and synchronous: bytes in, values out. Nothing is followed without
//! a bound, nothing is allocated because the image claims a size, and a damaged
//! place hides no more than what is in it.
//!
//! This is our own. `ext4-view` resolves each path from the root and took sixty
//! times as long for a listing; it tells no inode numbers, no extents and no
//! extended attributes, and allocates what an image claims.
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
mod cache;
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
mod journal;
mod kind;
mod limits;
mod link;
mod lookup;
mod options;
mod runs;
mod store;
mod superblock;
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
