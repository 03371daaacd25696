use std::path::{Path, PathBuf};

use super::{error::PatchErrorKind, hunk::Hunk, name::quote_path};

/// The part of a patch for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    pub(super) kind: FilePatchKind,
    pub(super) old_path: Option<PathBuf>,
    pub(super) new_path: Option<PathBuf>,
    pub(super) old_mode: Option<u32>,
    pub(super) new_mode: Option<u32>,
    pub(super) hunks: Vec<Hunk<'a>>,
    /// Whether the lines of the patch have added carriage returns. The lines
    /// that name the file show it.
    pub(super) has_carriage_returns: bool,
    /// Whether the file may be missing although the kind is `Modified`: plain
    /// patches cannot state that they create a file.
    pub(super) may_create: bool,
}

/// The kind of a [`FilePatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum FilePatchKind {
    /// It is created.
    Added,
    /// Its lines, its mode or both change.
    Modified,
    /// It is deleted.
    Deleted,
    /// It is renamed, and its lines may change.
    Renamed,
    /// It is copied, and the lines of the copy may change.
    Copied,
}

impl<'a> FilePatch<'a> {
    /// Returns what the patch does with the file.
    pub fn kind(&self) -> FilePatchKind {
        self.kind
    }

    /// Returns the path of the file to read, or `None` for an added file. It is
    /// relative and has no `..`.
    pub fn old_path(&self) -> Option<&Path> {
        self.old_path.as_deref()
    }

    /// Returns the path of the file to write, or `None` for a deleted file. It
    /// is relative and has no `..`.
    pub fn new_path(&self) -> Option<&Path> {
        self.new_path.as_deref()
    }

    /// Returns the new path, or the old one if there is no new one.
    pub fn path(&self) -> &Path {
        let path = self.new_path.as_deref().or(self.old_path.as_deref());
        path.unwrap_or(Path::new(""))
    }

    /// Returns the mode of the old file, with the file type as in `st_mode`, if
    /// the patch states it: `0o100644`, or `0o120000` for a symlink.
    pub fn old_mode(&self) -> Option<u32> {
        self.old_mode
    }

    /// Returns the mode of the new file, or `None` if the patch does not state
    /// it. Then a new file gets the default mode, and others keep theirs.
    pub fn new_mode(&self) -> Option<u32> {
        self.new_mode
    }

    /// Returns the hunks.
    pub fn hunks(&self) -> &[Hunk<'a>] {
        &self.hunks
    }

    /// Checks what cannot be seen from single lines.
    pub(super) fn check(&self) -> Result<(), PatchErrorKind> {
        let is_empty = |count: fn(&Hunk<'_>) -> u64| self.hunks.iter().all(|hunk| count(hunk) == 0);
        match self.kind {
            FilePatchKind::Added if !is_empty(|hunk| hunk.old.count) || self.hunks.len() > 1 => {
                Err(PatchErrorKind::LinesInMissingFile)
            }
            FilePatchKind::Deleted if !is_empty(|hunk| hunk.new.count) => {
                Err(PatchErrorKind::LinesInMissingFile)
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
