use std::path::{Path, PathBuf};

use super::{error::PatchErrorKind, hunk::Hunk, name::quote_path};

/// What a patch does with one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    pub(super) kind: FilePatchKind,
    pub(super) old_path: Option<PathBuf>,
    pub(super) new_path: Option<PathBuf>,
    pub(super) old_mode: Option<u32>,
    pub(super) new_mode: Option<u32>,
    pub(super) hunks: Vec<Hunk<'a>>,
    /// Whether the lines of the patch got carriage returns on their way. That
    /// is seen from the lines that name the file.
    pub(super) has_returns: bool,
    /// Whether the file need not exist, although that is not said: plain
    /// patches have no way to.
    pub(super) may_create: bool,
}

/// What becomes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePatchKind {
    /// It is made.
    Added,
    /// Its lines, its mode or both change.
    Modified,
    /// It is removed.
    Deleted,
    /// It gets another name, and perhaps other lines.
    Renamed,
    /// A copy of it is made, perhaps with other lines.
    Copied,
}

impl<'a> FilePatch<'a> {
    /// What becomes of the file.
    pub fn kind(&self) -> FilePatchKind {
        self.kind
    }

    /// The file that is read; `None` for one that is added. It is relative and
    /// without `..`.
    pub fn old_path(&self) -> Option<&Path> {
        self.old_path.as_deref()
    }

    /// The file that is written; `None` for one that is deleted. It is relative
    /// and without `..`.
    pub fn new_path(&self) -> Option<&Path> {
        self.new_path.as_deref()
    }

    /// The file that this is about: the new one, if there is one.
    pub fn path(&self) -> &Path {
        let path = self.new_path.as_deref().or(self.old_path.as_deref());
        path.unwrap_or(Path::new(""))
    }

    /// The mode of the old file with its type as in `st_mode`, if it is told:
    /// `0o100644`, or `0o120000` for a symlink.
    pub fn old_mode(&self) -> Option<u32> {
        self.old_mode
    }

    /// The mode that the new file gets; `None` if that is not for the patch to
    /// say: a new file gets the usual one, others keep theirs.
    pub fn new_mode(&self) -> Option<u32> {
        self.new_mode
    }

    /// The places that change.
    pub fn hunks(&self) -> &[Hunk<'a>] {
        &self.hunks
    }

    /// Checks what no line can tell alone.
    pub(super) fn check(&self) -> Result<(), PatchErrorKind> {
        let is_empty = |count: fn(&Hunk<'_>) -> u64| self.hunks.iter().all(|hunk| count(hunk) == 0);
        match self.kind {
            FilePatchKind::Added if !is_empty(|hunk| hunk.old.count) || self.hunks.len() > 1 => {
                Err(PatchErrorKind::LinesOfNothing)
            }
            FilePatchKind::Deleted if !is_empty(|hunk| hunk.new.count) => {
                Err(PatchErrorKind::LinesOfNothing)
            }
            FilePatchKind::Modified if self.hunks.is_empty() && self.new_mode.is_none() => {
                Err(PatchErrorKind::NoChange {
                    path: quote_path(self.path()),
                })
            }
            _ => Ok(()),
        }
    }
}
