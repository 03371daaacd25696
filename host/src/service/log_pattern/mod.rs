//! Compiles the regular expressions of log probes.
//!
//! ```text
//!  "on [0-9]+$" ──regex-syntax──> Hir ──Compiler──> LogPatternBuf ──> the agent
//! ```
//!
//! The agent gets a [program](vmcell_wire::service::log_pattern) and runs it. So
//! an invalid expression is an error before anything is started, and PID 1 of a
//! guest contains no parser of regular expressions.

mod compiler;
#[cfg(test)]
mod tests;

use regex_syntax::{Error as SyntaxError, ParserBuilder, hir};
use vmcell_wire::service::log_pattern::LogPatternBuf;

use compiler::Compiler;

/// The longest expression, in bytes.
const MAX_PATTERN: usize = 1024;

/// No expression of [`MAX_PATTERN`] bytes is nested more deeply.
const MAX_NESTING: u32 = 1024;

/// Why a text cannot be the pattern of a log probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogPatternError {
    /// It is empty and would match every line.
    #[error("it is empty: write a regular expression that matches the line to wait for")]
    Empty,
    /// It has too many bytes.
    #[error("it has {length} bytes: use at most {MAX_PATTERN}")]
    TooLong {
        /// The number of its bytes.
        length: usize,
    },
    /// It is not a valid regular expression.
    #[error(
        "invalid at character {position}: {reason}; write \\ before a special character that is meant literally"
    )]
    Syntax {
        /// The position of the invalid part in characters, from 1.
        position: usize,
        /// What is wrong.
        reason: String,
    },
    /// It has an assertion that log probes do not support.
    #[error(
        "it has an unsupported assertion: use ^ and $ without the flags m and R, or \\A, \\z, \\b and \\B"
    )]
    UnsupportedAssertion,
    /// Its compiled form is too large.
    #[error("it is too large: use fewer repetitions, such as + in place of {{100,}}")]
    TooLarge,
}

/// Compiles a regular expression that matches bytes.
pub(super) fn compile(pattern: &str) -> Result<LogPatternBuf, LogPatternError> {
    let length = pattern.len();
    if length == 0 {
        return Err(LogPatternError::Empty);
    }
    if length > MAX_PATTERN {
        return Err(LogPatternError::TooLong { length });
    }
    let mut parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(MAX_NESTING)
        .build();
    let parsed = parser.parse(pattern);
    let parsed = parsed.map_err(|error| syntax_error(pattern, &error))?;
    let mut compiler = Compiler::default();
    compiler.add(&parsed)?;
    compiler.finish()
}

fn syntax_error(pattern: &str, error: &SyntaxError) -> LogPatternError {
    let (offset, reason) = match error {
        SyntaxError::Parse(error) => (error.span().start.offset, error.kind().to_string()),
        SyntaxError::Translate(error) => {
            let reason = match error.kind() {
                hir::ErrorKind::UnicodeNotAllowed => {
                    "only ASCII characters and bytes are possible here".to_owned()
                }
                kind => kind.to_string(),
            };
            (error.span().start.offset, reason)
        }
        // There are no others.
        error => (0, error.to_string()),
    };
    let before = pattern.get(..offset).unwrap_or_default();
    LogPatternError::Syntax {
        position: before.chars().count() + 1,
        reason,
    }
}
