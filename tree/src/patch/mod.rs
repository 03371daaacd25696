//! Parses unified text patches, and applies them to bytes.
//!
//! ```text
//!  text ──parse──> Patch ──files──> FilePatch ──apply──> new bytes, or Mismatch
//!                        ──apply──────────────────────> all files, or Mismatch
//! ```
//!
//! This module does no I/O: the caller reads the old files and writes the new
//! ones.
//!
//! No existing crate was suitable. `patch`, `gitpatch`, `unidiff` and `mpatch`
//! read text, not bytes. `diffy` reads bytes and git's headers, but has no
//! fuzz, does not report which line differs from the hunk, and tries a hunk at
//! every line of the file, so a hostile file can make it arbitrarily slow.

mod apply;
mod epoch;
mod error;
mod file;
mod git;
mod hunk;
mod line;
mod mismatch;
mod name;
mod nearest;
mod parse;
mod plain;
mod reader;
mod search;
#[cfg(test)]
mod tests;
mod tree;

pub use apply::ApplyOptions;
pub use error::{PatchError, PatchErrorKind};
pub use file::{FilePatch, FilePatchKind};
pub use hunk::{Hunk, HunkLine, HunkLineKind, LineRange};
pub use mismatch::{HunkMismatch, Mismatch, MismatchKind, MismatchReason, NearestMatch};
pub use name::BadName;
pub use parse::{Patch, Strip};
pub use tree::TreeFile;

pub(crate) use line::{Lines, TextLine};
pub(crate) use name::{quote, relative_path};
