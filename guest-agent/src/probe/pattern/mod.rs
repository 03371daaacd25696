//! Regular expressions over bytes.
//!
//! ```text
//!  "on [0-9]+$" ──parse──> Program ──machine──> whether a line matches
//! ```
//!
//! The syntax is that of the crate `regex`, without what is about characters
//! beyond ASCII: whatever is understood here means the same there, and the rest
//! is refused. The engine is our own, because that of the crate
//! `regex-automata` made PID 1 half as large again. It follows all ways at
//! once, so the time that a line takes grows with its length and no faster,
//! whatever the expression.

mod bracket;
mod class;
mod machine;
mod parse;
mod program;

#[cfg(test)]
mod tests;

use alloc::{format, string::String};

use machine::Machine;

/// A regular expression.
pub(super) struct Pattern(Machine);

/// The longest expression, in bytes.
const MAX_PATTERN: usize = 1024;

impl Pattern {
    /// Answers in words what is wrong with an expression, and where.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!(
                "the regular expression has more than {MAX_PATTERN} bytes"
            ));
        }
        let program = parse::parse(pattern).map_err(|wrong| {
            let place = wrong.place.saturating_add(1);
            let what = wrong.what;
            format!("the regular expression is wrong at character {place}: {what}")
        })?;
        Ok(Self(Machine::new(program)))
    }

    /// Whether a line has it anywhere.
    pub(super) fn matches(&mut self, line: &[u8]) -> bool {
        self.0.matches(line)
    }
}
