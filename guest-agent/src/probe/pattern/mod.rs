//! Regular expressions over bytes.
//!
//! ```text
//!  "on [0-9]+$" ──parse──> Program ──matcher──> whether a line matches
//! ```
//!
//! The syntax is that of the crate `regex`, without what concerns characters
//! beyond ASCII: every accepted expression means the same there, and the rest
//! is rejected. The engine is our own, because that of the crate
//! `regex-automata` made PID 1 half as large again. It follows all paths at
//! once, so the time for a line is linear in its length, whatever the
//! expression.

mod bracket;
mod class;
mod matcher;
mod parse;
mod program;

#[cfg(test)]
mod tests;

use alloc::{format, string::String};

use matcher::Matcher;

/// A regular expression.
pub(super) struct Pattern(Matcher);

/// The longest expression, in bytes.
const MAX_PATTERN: usize = 1024;

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// A message with what is wrong, and where.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!(
                "the regular expression has more than {MAX_PATTERN} bytes"
            ));
        }
        let program = parse::parse(pattern).map_err(|error| {
            let position = error.position.saturating_add(1);
            let message = error.message;
            format!("the regular expression is wrong at character {position}: {message}")
        })?;
        Ok(Self(Matcher::new(program)))
    }

    /// Returns whether the expression matches anywhere in a line.
    pub(super) fn matches(&mut self, line: &[u8]) -> bool {
        self.0.matches(line)
    }
}
