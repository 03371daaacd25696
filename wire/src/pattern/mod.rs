//! Patterns that select paths of a tree: a single pattern ([`Glob`]), lines in
//! the syntax of `.gitignore` ([`Rules`]), or include and exclude rules
//! ([`Filter`]).
//!
//! A path is relative to the root of the tree, its components are separated by
//! single slashes, and none of them is empty, `.` or `..`. Paths and patterns
//! are bytes: a name need not be UTF-8. The empty path is the root itself, which
//! no pattern matches.
//!
//! | pattern       | matches                                                       |
//! |---------------|---------------------------------------------------------------|
//! | `*`           | any number of bytes of one name, including none               |
//! | `?`           | one byte of a name                                            |
//! | `[a-z_]`      | one of these bytes                                            |
//! | `[!a]` `[^a]` | one byte of a name that is not one of these                   |
//! | `[[:digit:]]` | one byte of this POSIX class, as git defines it               |
//! | `\*`          | the byte after the backslash                                  |
//! | `a/**/b`      | `a/b`, and `b` anywhere below `a`                             |
//! | `**/b`        | `b` anywhere                                                  |
//! | `a/**`        | everything below `a`, but not `a`                             |
//!
//! More than two stars mean the same as two, and two that are not a whole
//! component mean the same as one. No wildcard other than `**` matches a slash; a
//! leading dot is not special.
//!
//! Both patterns and paths are untrusted. A match takes at most about as many
//! steps as the length of the pattern times that of the path, allocates no memory,
//! and needs a stack of constant size.

mod element;
mod error;
mod filter;
mod glob;
mod rules;
mod set;
mod wildcard;

pub use error::{PatternError, PatternErrorKind};
pub use filter::{Filter, Selection};
pub use glob::Glob;
pub use rules::{RuleMatch, Rules};

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 4096;

/// The maximum number of lines of [`Rules`], without blank lines and comments.
pub const MAX_RULES: usize = 1024;

/// The maximum total length of the lines of [`Rules`], in bytes.
pub const MAX_RULES_BYTES: usize = 64 * 1024;
