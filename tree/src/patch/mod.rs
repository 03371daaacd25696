//! Parses text patches, and applies them to bytes.
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
//!
//! The result is that of GNU patch with these exceptions, which its own tests
//! show:
//!
//! - A patch is applied completely or not at all, and without fuzz unless
//!   [`ApplyOptions::fuzz`] allows it.
//! - The name of a file depends only on the patch, not on which files exist.
//!   Absolute names and names with `..` are errors.
//! - Nothing is applied below a symlink that the same patch creates.
//! - Patches without names (`diff` without `-u` or `-c`, and scripts for `ed`)
//!   are not read.
//! - Binary files are left out, and listed by [`Patch::omitted`]. Those of git
//!   are zlib in base 85. The crate with that alphabet, `base85`, panics or
//!   overflows at invalid digits, and is not maintained any more.

mod apply;
mod binary;
mod context;
mod display;
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
pub use parse::{OmittedFile, Patch, Strip};
pub use tree::TreeFile;

pub(crate) use line::{Lines, TextLine};
pub(crate) use name::{name_terminator, quote, relative_path};
