//! Unified text patches: reading them, and applying them to bytes.
//!
//! ```text
//!  text ──parse──> Patch ──files──> FilePatch ──apply──> new bytes, or why not
//!                        ──apply──────────────────────> all files, or why not
//! ```
//!
//! Everything here is pure: bytes in, bytes out. Whoever calls it reads the old
//! files and writes the new ones.
//!
//! This is our own. `patch`, `gitpatch`, `unidiff` and `mpatch` read text, not
//! bytes. `diffy` reads bytes and git's headers, but has no fuzz, tries a hunk at
//! every line of the file, which a hostile file makes as slow as it likes, and
//! does not say which line was another than the hunk expected.

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
pub use mismatch::{HunkMismatch, HunkState, Mismatch, MismatchReason, Nearest};
pub use name::BadName;
pub use parse::{Patch, Strip};
pub use tree::TreeFile;

pub(crate) use line::{Lines, TextLine};
pub(crate) use name::{quote, relative};
