//! Trees of files: what is in them, how they differ, and how they travel.
//!
//! ```text
//!  Entry, WalkOptions      a file of a guest or of a disk, and which are wanted
//!  transfer                whole trees in and out, from and to tar archives
//!  diff, patch             what has changed, as a patch, and applying one
//!  printable, Sanitizer    untrusted text made safe for a terminal
//! ```
//!
//! Everything here is synchronous and needs neither a VM nor an agent. Names,
//! contents and archives may come from an attacker.
//!
//! This crate is what [`vmcell`](https://docs.rs/vmcell) and
//! [`vmcell-disk`](https://docs.rs/vmcell-disk) have in common; both re-export
//! what programs use. The rest of its API may change with any release.

pub mod diff;
mod entry;
mod filter;
pub mod patch;
mod printable;
mod read_options;
pub mod transfer;
mod walk_options;

pub use entry::{Entry, EntryKind, Usage, path, relative, system_time, wire_time};
pub use filter::FilterLines;
pub use printable::{
    ColourPolicy, Sanitizer, beginning, is_hidden, is_printable, printable, printable_name,
};
pub use read_options::ReadOptions;
pub use walk_options::WalkOptions;
