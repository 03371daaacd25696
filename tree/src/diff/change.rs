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
    /// What was there.
    pub old: Option<ManifestEntry>,
    /// What is there now.
    pub new: Option<ManifestEntry>,
}

/// What sort of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Nothing was there.
    Added,
    /// Nothing is there now.
    Removed,
    /// The bytes of a file, or the target of a symlink, are others. The mode
    /// may be another too.
    Modified,
    /// Something of another type is there now.
    TypeChanged,
    /// Only the mode is another.
    ModeChanged,
}

impl Change {
    /// A change of a path.
    pub fn new(path: PathBuf, old: Option<ManifestEntry>, new: Option<ManifestEntry>) -> Self {
        Self { path, old, new }
    }
}

impl Manifest {
    /// Everything at which two trees differ, sorted by path.
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
    /// What sort of change it is.
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

    /// Whether something was there, is still there, and has another mode.
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

/// The mode of a symlink means nothing.
fn has_same_mode(old: &ManifestEntry, new: &ManifestEntry) -> bool {
    let is_symlink = |entry: &ManifestEntry| matches!(entry.kind, ManifestKind::Symlink { .. });
    old.mode == new.mode || is_symlink(old) || is_symlink(new)
}

fn is_same_type(old: &ManifestKind, new: &ManifestKind) -> bool {
    std::mem::discriminant(old) == std::mem::discriminant(new)
}
