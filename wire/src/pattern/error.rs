use core::fmt;

use super::{MAX_PATTERN, MAX_RULES, MAX_RULES_BYTES};

/// Why a pattern, or a list of them, cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The line of the pattern in its list, counted from 1. `None` for a single
    /// pattern, and for errors of the list as a whole.
    pub line: Option<usize>,
    /// The kind of error.
    pub kind: PatternErrorKind,
}

/// The kind of a [`PatternError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternErrorKind {
    /// The pattern is longer than [`MAX_PATTERN`].
    TooLong,
    /// The pattern contains a zero byte.
    ZeroByte,
    /// A `[` has no `]`.
    UnclosedBracket,
    /// The name between `[:` and `:]` is not a known class.
    UnknownClass,
    /// Nothing follows a backslash.
    TrailingBackslash,
    /// A component is empty, `.` or `..`, so no path can match.
    BadComponent,
    /// There are more than [`MAX_RULES`] lines.
    TooManyRules,
    /// The list is longer than [`MAX_RULES_BYTES`].
    TooLarge,
}

impl PatternErrorKind {
    /// Returns the error with the line of the list.
    pub(super) const fn in_line(self, line: usize) -> PatternError {
        PatternError {
            line: Some(line),
            kind: self,
        }
    }
}

impl From<PatternErrorKind> for PatternError {
    fn from(kind: PatternErrorKind) -> Self {
        Self { line: None, kind }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for PatternErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a pattern can have at most {MAX_PATTERN} bytes"),
            Self::ZeroByte => f.write_str("a pattern cannot hold a zero byte"),
            Self::UnclosedBracket => {
                f.write_str("a `[` has no `]`; write `\\[` for the character itself")
            }
            Self::UnknownClass => f.write_str(
                "unknown class in brackets; there are alnum, alpha, blank, cntrl, digit, graph, \
                 lower, print, punct, space, upper and xdigit",
            ),
            Self::TrailingBackslash => f.write_str(
                "nothing follows the last backslash; write `\\\\` for the character itself",
            ),
            Self::BadComponent => f.write_str(
                "no component of a pattern can be empty, `.` or `..`; \
                 write it relative to the root, without a slash at either end",
            ),
            Self::TooManyRules => write!(f, "there can be at most {MAX_RULES} lines of patterns"),
            Self::TooLarge => write!(
                f,
                "all patterns together can have at most {MAX_RULES_BYTES} bytes"
            ),
        }
    }
}

impl core::error::Error for PatternError {}
