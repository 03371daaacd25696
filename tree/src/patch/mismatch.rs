use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{line::TextLine, name::quote_path};
use crate::printable;

/// How many bytes of a line a message contains.
const MAX_SHOWN_BYTES: usize = 200;

/// A patch does not match a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", quote_path(path))]
#[non_exhaustive]
pub struct Mismatch {
    /// The path in the patch.
    pub path: PathBuf,
    /// Why it does not match.
    pub reason: MismatchReason,
}

/// Why a patch does not match a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MismatchReason {
    /// The patch creates the file, but it exists.
    #[error("the patch creates this file, but it exists: was the patch applied already?")]
    Exists,
    /// The patch changes or deletes the file, but it does not exist.
    #[error("the patch changes this file, but it does not exist")]
    Missing,
    /// The patch expects a regular file and there is a symlink, the reverse, or
    /// something else.
    #[error("the patch is for a file of another type: symlinks and regular files differ")]
    OtherType,
    /// The file has too many lines.
    #[error("the file has too many lines to be patched")]
    TooLarge,
    /// The patch deletes the file, but it has lines that the patch does not
    /// remove.
    #[error("the patch deletes this file, but it has lines that the patch does not remove")]
    ExtraContent,
    /// The parts of the patch up to this one read and write too many bytes,
    /// because they change or copy a large file again and again.
    #[error("the patch changes or copies large files too often: apply it in parts")]
    TooManyBytes,
    /// A hunk does not match.
    #[error(transparent)]
    Hunk(Box<HunkMismatch>),
}

/// The hunk that does not match, and the closest match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct HunkMismatch {
    /// The number of the hunk in the file, counted from 1.
    pub hunk: usize,
    /// The line of the patch at which the hunk starts.
    pub patch_line: u64,
    /// The line of the file at which the hunk was expected, counted from 1.
    pub file_line: u64,
    /// How it does not match.
    pub kind: MismatchKind,
    /// The place in the file that is most similar to the hunk.
    pub nearest: Option<NearestMatch>,
}

/// How a hunk does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchKind {
    /// Its lines are not in the file, or not where they are allowed.
    Differs,
    /// Its new lines are in the file: it seems to be applied already.
    Applied,
    /// Only line endings differ: carriage returns, or a missing newline on the
    /// last line.
    LineEndings,
    /// The search for its lines was too expensive.
    TooSlow,
}

/// The place in a file that is most similar to a hunk, and the first line there
/// that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearestMatch {
    /// The line of the file, counted from 1.
    pub line: u64,
    /// The line that the patch expects, truncated if it is long, and safe to
    /// print. `None` for the end of the file.
    pub expected: Option<String>,
    /// The line of the file, in the same form.
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

impl NearestMatch {
    pub(super) fn new(
        index: usize,
        expected: Option<TextLine<'_>>,
        found: Option<TextLine<'_>>,
    ) -> Self {
        Self {
            line: line_number(index),
            expected: expected.map(printable_line),
            found: found.map(printable_line),
        }
    }
}

/// Returns the line number, counted from 1.
pub(super) fn line_number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX).saturating_add(1)
}

fn printable_line(line: TextLine<'_>) -> String {
    match line.text.get(..MAX_SHOWN_BYTES) {
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
        match self.kind {
            MismatchKind::Differs => {}
            MismatchKind::Applied => write!(formatter, "; it seems to be applied already")?,
            MismatchKind::LineEndings => write!(
                formatter,
                "; only the line endings differ: convert them to the same, LF or CRLF"
            )?,
            MismatchKind::TooSlow => write!(
                formatter,
                "; the search for its place was too expensive: correct the line numbers"
            )?,
        }
        match &self.nearest {
            Some(nearest) => write!(formatter, "; {nearest}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for NearestMatch {
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
