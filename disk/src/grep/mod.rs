//! Searching file contents.

mod search;

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use regex::bytes::{Regex, RegexBuilder};

use self::search::{Search, SearchStep};
use super::{Disk, DiskError, DiskProblem, walk::DiskEntries};
use vmcell_tree::{EntryKind, WalkOptions};

/// A pattern to search for in file contents, with options. Used with
/// [`Disk::grep`].
///
/// ```
/// use vmcell_disk::{Grep, WalkOptions};
///
/// let passwords = Grep::new("password *=")
///     .ignore_case()
///     .within(WalkOptions::new().exclude("*.gz"));
/// ```
#[derive(Clone, Debug)]
pub struct Grep {
    pattern: String,
    ignore_case: bool,
    literal: bool,
    binary_lines: bool,
    walk: WalkOptions,
}

impl Grep {
    /// Creates a search for lines that match a regular expression, in the
    /// syntax of the `regex` crate. Lines are bytes and need not be UTF-8.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            ignore_case: false,
            literal: false,
            binary_lines: false,
            walk: WalkOptions::new(),
        }
    }

    /// Ignores case.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// Treats the pattern as literal text instead of a regular expression.
    #[must_use]
    pub fn literal(mut self) -> Self {
        self.literal = true;
        self
    }

    /// Returns a match for each matching line of a binary file, instead of one
    /// for the file, to count them.
    #[must_use]
    pub fn binary_lines(mut self) -> Self {
        self.binary_lines = true;
        self
    }

    /// Sets the options of the walk: depth, patterns, order.
    #[must_use]
    pub fn within(mut self, walk: WalkOptions) -> Self {
        self.walk = walk;
        self
    }

    fn compile(&self) -> Result<Regex, DiskError> {
        let pattern = if self.literal {
            regex::escape(&self.pattern)
        } else {
            self.pattern.clone()
        };
        RegexBuilder::new(&pattern)
            .case_insensitive(self.ignore_case)
            .build()
            .map_err(|error| DiskError::Invalid(error.to_string()))
    }
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrepMatch {
    /// A matching line of a text file.
    Line(MatchedLine),
    /// A match in a binary file, without the line. It is reported once for the
    /// file, unless [`Grep::binary_lines`] is set.
    Binary {
        /// The path of the file, relative to the root.
        path: PathBuf,
    },
}

/// A matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedLine {
    /// The path of the file, relative to the root.
    pub path: PathBuf,
    /// The line number, starting at 1.
    pub number: u64,
    /// The offset of the line in the file, in bytes.
    pub offset: u64,
    /// The line without its newline, as arbitrary bytes: print it with
    /// [`printable`](crate::printable). If the line is long, only the text
    /// around the first match.
    pub text: Vec<u8>,
    /// The range of the first match in `text`.
    pub matched: Range<usize>,
    /// Whether `text` is only a part of the line.
    pub is_truncated: bool,
}

impl Disk {
    /// Searches a file, or the regular files below a directory. Symlinks below
    /// it are not followed. Holes are not searched. A file with a zero byte
    /// near its start, or a hole before the match, counts as binary.
    ///
    /// # Errors
    /// [`DiskError::Invalid`] for a bad pattern; see [`walk`](Self::walk).
    pub fn grep(&self, path: impl AsRef<Path>, grep: &Grep) -> Result<GrepMatches<'_>, DiskError> {
        let regex = grep.compile()?;
        Ok(GrepMatches {
            disk: self,
            entries: self.walk(path, grep.walk.clone().without_names())?,
            regex,
            binary_lines: grep.binary_lines,
            search: None,
        })
    }
}

/// The matches, as they are found. Returned by [`Disk::grep`].
pub struct GrepMatches<'d> {
    disk: &'d Disk,
    entries: DiskEntries<'d>,
    regex: Regex,
    binary_lines: bool,
    /// The file being searched.
    search: Option<Search<'d>>,
}

impl GrepMatches<'_> {
    /// Skips the rest of the current file.
    pub fn skip_file(&mut self) {
        self.search = None;
    }

    fn advance(&mut self) -> Option<Result<GrepMatch, DiskProblem>> {
        loop {
            if let Some(search) = &mut self.search {
                let budget = &mut self.entries.traversal.budget;
                match search.next(&self.regex, budget) {
                    SearchStep::Found(found) => return Some(Ok(found)),
                    SearchStep::Failed(error) => {
                        let problem = DiskProblem::new(search.path(), error);
                        self.search = None;
                        if !problem.error.is_local() {
                            self.entries.traversal.end();
                        }
                        return Some(Err(problem));
                    }
                    SearchStep::Ended => self.search = None,
                }
            }
            let entry = match self.entries.advance()? {
                Ok(entry) if entry.kind == EntryKind::File => entry,
                Ok(_) => continue,
                Err(problem) => return Some(Err(problem)),
            };
            match Search::new(self.disk, entry, self.binary_lines) {
                Ok(search) => self.search = Some(search),
                Err(problem) => return Some(Err(problem)),
            }
        }
    }
}

impl Iterator for GrepMatches<'_> {
    type Item = Result<GrepMatch, DiskProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.traversal.budget.resume();
        let next = self.advance();
        self.entries.traversal.budget.pause();
        next
    }
}

impl fmt::Debug for GrepMatches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrepMatches").finish_non_exhaustive()
    }
}
