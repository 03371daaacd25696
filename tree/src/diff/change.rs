use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::manifest::{Manifest, ManifestEntry, ManifestKind};

/// A path at which two trees differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path.
    pub path: PathBuf,
    /// The old entry.
    pub old: Option<ManifestEntry>,
    /// The new entry.
    pub new: Option<ManifestEntry>,
}

/// The kind of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// There was no entry.
    Added,
    /// There is no entry any more.
    Removed,
    /// The content of a file or the target of a symlink differs. The mode may
    /// differ too.
    Modified,
    /// The type of the entry differs.
    TypeChanged,
    /// Only the mode differs.
    ModeChanged,
}

impl ChangeKind {
    /// Returns a stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Modified => "modified",
            Self::TypeChanged => "type-changed",
            Self::ModeChanged => "mode-changed",
        }
    }
}

impl Change {
    /// Creates a change.
    pub fn new(path: PathBuf, old: Option<ManifestEntry>, new: Option<ManifestEntry>) -> Self {
        Self { path, old, new }
    }
}

impl Manifest {
    /// Returns all differences between two trees, sorted by path.
    pub fn compare(old: &Self, new: &Self) -> Vec<Change> {
        let paths: BTreeSet<&Path> = old.iter().chain(new.iter()).map(|(path, _)| path).collect();
        paths
            .into_iter()
            .map(|path| (path, old.get(path), new.get(path)))
            .filter(|(_, old, new)| !is_same(*old, *new))
            .map(|(path, old, new)| Change::new(path.to_owned(), old.cloned(), new.cloned()))
            .collect()
    }
}

impl Change {
    /// Returns the kind of change.
    pub fn kind(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            (Some(old), Some(new)) if !is_same_type(&old.kind, &new.kind) => {
                ChangeKind::TypeChanged
            }
            (Some(old), Some(new)) if old.kind != new.kind => ChangeKind::Modified,
            _ => ChangeKind::ModeChanged,
        }
    }

    /// Returns whether the path exists in both trees, with different modes.
    pub fn mode_changed(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => !has_same_mode(old, new),
            _ => false,
        }
    }
}

fn is_same(old: Option<&ManifestEntry>, new: Option<&ManifestEntry>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old.kind == new.kind && has_same_mode(old, new),
        _ => false,
    }
}

/// Ignores the mode of symlinks, which has no effect.
fn has_same_mode(old: &ManifestEntry, new: &ManifestEntry) -> bool {
    let is_symlink = |entry: &ManifestEntry| matches!(entry.kind, ManifestKind::Symlink { .. });
    old.mode == new.mode || is_symlink(old) || is_symlink(new)
}

fn is_same_type(old: &ManifestKind, new: &ManifestKind) -> bool {
    std::mem::discriminant(old) == std::mem::discriminant(new)
}
