use super::{PatternError, RuleMatch, Rules};

/// Selects the entries of a tree by include and exclude rules.
///
/// Both lists are [`Rules`]. Each path is decided as follows, from the root
/// down; the first sentence that applies decides.
///
/// 1. The root is taken if there are no include lines, and else entered.
/// 2. What is in a directory that is skipped is skipped.
/// 3. What the exclude lines exclude is skipped.
/// 4. What include lines match is taken, unless the last line that matches it
///    begins with `!`; then go on with 6.
/// 5. What no include line matches is taken if its directory is taken.
/// 6. A directory is entered if an include line could match something below it.
/// 7. Everything else is skipped.
///
/// So without include lines, everything is taken that is not excluded. With
/// include lines, everything is taken that one of them matches, and everything
/// below it, except what is excluded. As with git, nothing below an excluded
/// directory can be included again.
///
/// ```
/// use vmcell_wire::pattern::{Filter, Selection};
///
/// let filter = Filter::new(b"/src/\n*.md", b"*.o")?;
/// assert_eq!(filter.select(b"src", true), Selection::Include);
/// assert_eq!(filter.select(b"src/disk/inode.c", false), Selection::Include);
/// assert_eq!(filter.select(b"src/disk/inode.o", false), Selection::Skip);
/// assert_eq!(filter.select(b"doc", true), Selection::Enter);
/// assert_eq!(filter.select(b"doc/disk.md", false), Selection::Include);
/// assert_eq!(filter.select(b"doc/disk.svg", false), Selection::Skip);
/// # Ok::<(), vmcell_wire::pattern::PatternError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// What to take. If empty, everything.
    pub include: Rules,
    /// What to skip even if it is included.
    pub exclude: Rules,
}

/// The decision of a [`Filter`] about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// It is selected.
    Include,
    /// It is a directory that is not selected itself, but something below it may
    /// be. It is needed only if something is.
    Enter,
    /// Neither it nor anything below it is selected.
    Skip,
}

impl Filter {
    /// Parses the lines of both lists.
    ///
    /// # Errors
    ///
    /// As [`Rules::parse`].
    pub fn new(include: &[u8], exclude: &[u8]) -> Result<Self, PatternError> {
        Ok(Self {
            include: Rules::parse(include)?,
            exclude: Rules::parse(exclude)?,
        })
    }

    /// Returns the decision about the root of the tree.
    pub fn select_root(&self) -> Selection {
        if self.include.is_empty() {
            Selection::Include
        } else {
            Selection::Enter
        }
    }

    /// Returns the decision about a path, given the decision about its parent
    /// directory. In a walk this avoids evaluating all parents for each path.
    pub fn select_within(&self, parent: Selection, path: &[u8], is_dir: bool) -> Selection {
        if parent == Selection::Skip || self.exclude.match_path(path, is_dir) == RuleMatch::Excluded
        {
            return Selection::Skip;
        }
        // `Excluded` means that a line matches, which selects the path here.
        match (self.include.match_path(path, is_dir), parent) {
            (RuleMatch::Excluded, _) | (RuleMatch::Unmentioned, Selection::Include) => {
                Selection::Include
            }
            _ if is_dir && self.include.could_exclude_below(path) => Selection::Enter,
            _ => Selection::Skip,
        }
    }

    /// Returns the decision about a path, by evaluating all its parents.
    pub fn select(&self, path: &[u8], is_dir: bool) -> Selection {
        let mut selection = self.select_root();
        if path.is_empty() {
            return selection;
        }
        let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        for (end, _) in slashes {
            let parent = path.get(..end).unwrap_or_default();
            selection = self.select_within(selection, parent, true);
        }
        self.select_within(selection, path, is_dir)
    }
}
