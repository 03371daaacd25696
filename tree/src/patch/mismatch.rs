use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{line::TextLine, name::quote_path};
use crate::printable;

/// How much of a line is shown.
const SHOWN: usize = 200;

/// Why a patch does not fit a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", quote_path(path))]
#[non_exhaustive]
pub struct Mismatch {
    /// The file, as the patch names it.
    pub path: PathBuf,
    /// What does not fit.
    pub reason: MismatchReason,
}

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MismatchReason {
    /// The file is to be made, but is there.
    #[error("the patch makes this file, but it exists: was the patch applied already?")]
    Exists,
    /// The file is to be changed or removed, but is not there.
    #[error("the patch changes this file, but it does not exist")]
    Missing,
    /// The file is a symlink where the patch has a regular file, or the other
    /// way round, or neither.
    #[error("the patch is for a file of another type: symlinks and regular files differ")]
    OtherType,
    /// The file is too large to be patched.
    #[error("the file has too many lines to be patched")]
    TooLarge,
    /// The file is to be removed, but has lines that the patch does not know.
    #[error("the patch removes this file, but there is more in it than the patch removes")]
    Remains,
    /// A hunk does not fit.
    #[error(transparent)]
    Hunk(Box<HunkMismatch>),
}

/// Which hunk does not fit, and what is there instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct HunkMismatch {
    /// Which hunk of the file, from 1.
    pub hunk: usize,
    /// The line of the patch with which the hunk begins.
    pub patch_line: u64,
    /// The line of the file at which the hunk was expected, from 1.
    pub file_line: u64,
    /// How it does not fit.
    pub state: HunkState,
    /// The place of the file that is most like the hunk.
    pub nearest: Option<Nearest>,
}

/// How a hunk does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HunkState {
    /// Its lines are nowhere in the file, or not where they could be.
    Differs,
    /// Its new lines are there: it seems to be applied already.
    Applied,
    /// It would fit, but for the ends of lines: carriage returns, or a last
    /// line without newline.
    LineEnds,
    /// Looking for its lines took too long.
    TooSlow,
}

/// The place of a file that is most like a hunk, and the first line in it that
/// is another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearest {
    /// The line of the file, from 1.
    pub line: u64,
    /// What the patch wants there, cut if it is long, and made safe to print.
    /// `None` for the end of the file.
    pub expected: Option<String>,
    /// What is there, in the same way.
    pub found: Option<String>,
}

impl Mismatch {
    pub(super) fn new(path: &Path, reason: MismatchReason) -> Self {
        Self {
            path: path.to_owned(),
            reason,
        }
    }
}

impl Nearest {
    pub(super) fn new(
        index: usize,
        expected: Option<TextLine<'_>>,
        found: Option<TextLine<'_>>,
    ) -> Self {
        Self {
            line: line_number(index),
            expected: expected.map(show),
            found: found.map(show),
        }
    }
}

/// The number that people know a line by.
pub(super) fn line_number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX).saturating_add(1)
}

fn show(line: TextLine<'_>) -> String {
    match line.text.get(..SHOWN) {
        Some(start) if start.len() < line.text.len() => format!("{}…", printable(start)),
        _ => printable(line.text).into_owned(),
    }
}

impl fmt::Display for HunkMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            hunk,
            patch_line,
            file_line,
            ..
        } = self;
        write!(
            formatter,
            "hunk {hunk} (line {patch_line} of the patch) does not fit at line {file_line}"
        )?;
        match self.state {
            HunkState::Differs => {}
            HunkState::Applied => write!(formatter, "; it seems to be applied already")?,
            HunkState::LineEnds => write!(
                formatter,
                "; only the ends of the lines differ: make them alike, LF or CRLF"
            )?,
            HunkState::TooSlow => write!(
                formatter,
                "; looking for its place took too long: correct the line numbers"
            )?,
        }
        match &self.nearest {
            Some(nearest) => write!(formatter, "; {nearest}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            expected,
            found,
        } = self;
        let name = |side: &Option<String>| match side {
            Some(text) => format!("`{text}`"),
            None => "the end of the file".to_owned(),
        };
        let (expected, found) = (name(expected), name(found));
        write!(
            formatter,
            "line {line} should be {expected}, but is {found}"
        )
    }
}
