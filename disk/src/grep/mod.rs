//! Searching the contents of files.

mod search;

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use regex::bytes::{Regex, RegexBuilder};

use self::search::{Search, Searched};
use super::{Disk, DiskError, DiskProblem, walk::DiskEntries};
use vmcell_tree::{EntryKind, WalkOptions};

/// What is searched for in files.
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
    walk: WalkOptions,
}

impl Grep {
    /// Lines that match a regular expression, of bytes: a line need not be
    /// UTF-8.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            ignore_case: false,
            literal: false,
            walk: WalkOptions::new(),
        }
    }

    /// Capital letters are as good as small ones.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// The pattern is a text, and no regular expression.
    #[must_use]
    pub fn literal(mut self) -> Self {
        self.literal = true;
        self
    }

    /// In which files: how deep, below which names, in which order.
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

/// A place where something matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrepMatch {
    /// A line of a text.
    Line(MatchedLine),
    /// Somewhere in a file that is no text. It is told once, and not shown.
    Binary {
        /// The file, relative to the root.
        path: PathBuf,
    },
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedLine {
    /// The file, relative to the root.
    pub path: PathBuf,
    /// The number of the line, the first one is 1.
    pub number: u64,
    /// Where in the file the line begins, in bytes.
    pub offset: u64,
    /// The line without its end, any bytes: see
    /// [`printable`](crate::printable). Of a long one it is what surrounds the
    /// first match.
    pub text: Vec<u8>,
    /// Which bytes of the text match first.
    pub matched: Range<usize>,
    /// Whether the line is longer than what is in the text.
    pub is_cut: bool,
}

impl Disk {
    /// Searches the regular files below a directory, or one file. Symlinks below
    /// it are not followed. Holes are not searched; they are no text.
    ///
    /// # Errors
    /// [`DiskError::Invalid`] if the pattern makes no sense; see
    /// [`walk`](Self::walk).
    pub fn grep(&self, path: impl AsRef<Path>, grep: &Grep) -> Result<GrepMatches<'_>, DiskError> {
        let regex = grep.compile()?;
        Ok(GrepMatches {
            disk: self,
            entries: self.walk(path, grep.walk.clone().without_names())?,
            regex,
            search: None,
        })
    }
}

/// What matches, as it is found: see [`Disk::grep`].
pub struct GrepMatches<'d> {
    disk: &'d Disk,
    entries: DiskEntries<'d>,
    regex: Regex,
    /// The file that is being searched.
    search: Option<Search<'d>>,
}

impl GrepMatches<'_> {
    /// Goes on with the next file: of this one enough is known.
    pub fn skip_file(&mut self) {
        self.search = None;
    }

    fn advance(&mut self) -> Option<Result<GrepMatch, DiskProblem>> {
        loop {
            if let Some(search) = &mut self.search {
                let budget = &mut self.entries.traversal.budget;
                match search.next(&self.regex, budget) {
                    Searched::Found(found) => return Some(Ok(found)),
                    Searched::Failed(error) => {
                        let problem = DiskProblem::new(search.path(), error);
                        self.search = None;
                        if !problem.error.is_local() {
                            self.entries.traversal.end();
                        }
                        return Some(Err(problem));
                    }
                    Searched::Ended => self.search = None,
                }
            }
            let entry = match self.entries.advance()? {
                Ok(entry) if entry.kind == EntryKind::File => entry,
                Ok(_) => continue,
                Err(problem) => return Some(Err(problem)),
            };
            match Search::new(self.disk, entry) {
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
        self.entries.traversal.budget.rest();
        next
    }
}

impl fmt::Debug for GrepMatches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrepMatches").finish_non_exhaustive()
    }
}
