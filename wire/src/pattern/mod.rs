//! Which paths of a tree are meant: by one pattern ([`Glob`]), by lines as git
//! reads them in a `.gitignore` ([`Rules`]), or by what to take and what to
//! leave out ([`Filter`]).
//!
//! A path is relative to the root of the tree, its components are parted by
//! single slashes, and none of them is empty, `.` or `..`. Paths and patterns
//! are bytes: a name need not be UTF-8. The empty path is the root itself, which
//! nothing matches.
//!
//! | pattern       | matches                                                       |
//! |---------------|---------------------------------------------------------------|
//! | `*`           | any bytes of one name, or none                                |
//! | `?`           | one byte of a name                                            |
//! | `[a-z_]`      | one of these bytes                                            |
//! | `[!a]` `[^a]` | a byte of a name that is none of these                        |
//! | `[[:digit:]]` | one byte of this POSIX class, as git knows it                 |
//! | `\*`          | the byte behind the backslash                                 |
//! | `a/**/b`      | `a/b`, and `b` anywhere below `a`                             |
//! | `**/b`        | `b` anywhere                                                  |
//! | `a/**`        | everything below `a`, but not `a`                             |
//!
//! More than two stars are as good as two, and two that are not a whole component
//! are as good as one. No wildcard of a name matches a slash; a leading dot is a
//! byte as any other.
//!
//! Both patterns and paths may come from somebody who means harm. A match takes
//! at most about as many steps as the pattern has bytes times those of the path,
//! no memory, and a stack that does not grow with either.

mod element;
mod error;
mod filter;
mod glob;
mod rules;
mod set;
mod wildcard;

pub use error::{PatternError, PatternFault};
pub use filter::{Filter, Selection};
pub use glob::Glob;
pub use rules::{Rules, Verdict};

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 4096;

/// The most lines of [`Rules`], blank ones and comments not counted.
pub const MAX_RULES: usize = 1024;

/// How long the lines of [`Rules`] may be together, in bytes.
pub const MAX_RULES_BYTES: usize = 64 * 1024;
