//! Compares two trees and writes the difference as a patch.
//!
//! ```text
//!  Manifest ──┐
//!             ├─compare──> Change ──+ contents──> FileDiff ──> Diff ──> patch
//!  Manifest ──┘
//! ```
//!
//! This module does no I/O: the caller reads the manifests and the contents
//! from the guest. [`Patch`](crate::patch::Patch) and `git apply` accept the
//! patch.

mod change;
mod collector;
mod edits;
mod file_diff;
mod hunks;
mod manifest;
#[cfg(feature = "manifests")]
mod serialize;
#[cfg(test)]
mod tests;
mod tree_diff;

pub use change::{Change, ChangeKind};
pub use collector::{DiffCollector, DiffLimits, DiffTooLarge};
pub use file_diff::{DiffOptions, FileDiff, PatchDetail};
pub use manifest::{Manifest, ManifestEntry, ManifestKind};
#[cfg(feature = "manifests")]
pub use serialize::ManifestError;
pub use tree_diff::Diff;
