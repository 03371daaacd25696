//! What has changed in a tree: manifests, their comparison, and patches of it.
//!
//! ```text
//!  Manifest ──┐
//!             ├─compare──> Change ──+ contents──> FileDiff ──> Diff ──> patch
//!  Manifest ──┘
//! ```
//!
//! Everything here is pure: whoever calls it gets the manifests and the contents
//! from the guest. The patch is what [`Patch`](crate::patch::Patch) and `git apply`
//! take.

mod change;
mod collector;
mod edits;
mod file_diff;
mod hunks;
mod manifest;
mod store;
#[cfg(test)]
mod tests;
mod whole;

pub use change::{Change, ChangeKind};
pub use collector::{DiffCollector, DiffLimits};
pub use file_diff::{DiffOptions, FileDiff, Shown};
pub use manifest::{Manifest, ManifestEntry, ManifestKind};
pub use store::ManifestError;
pub use whole::Diff;
