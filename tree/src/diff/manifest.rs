use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::patch::{BadName, relative};

/// The bits of a mode that say what is permitted.
pub(super) const PERMISSIONS: u32 = 0o7777;

/// What is in a tree: every path beneath its root, with a digest of what is in
/// it. It is small enough to be kept, and tells later what has changed.
///
/// It may keep the texts of files, so that later also the lines that changed
/// can be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub(super) entries: BTreeMap<PathBuf, ManifestEntry>,
    pub(super) texts: BTreeMap<[u8; 32], Vec<u8>>,
}

/// One path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// What it is.
    pub kind: ManifestKind,
    /// What is permitted, without the type: `0o644`.
    pub mode: u32,
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestKind {
    /// A regular file.
    File {
        /// How many bytes are in it.
        size: u64,
        /// The SHA-256 of them.
        sha256: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symlink.
    Symlink {
        /// Where it points.
        target: Vec<u8>,
    },
    /// Anything else: a device, a socket, a pipe.
    Other,
}

impl Manifest {
    /// A manifest of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what is at a path. What was noted of it before is forgotten. Of
    /// the mode only the permissions are taken.
    ///
    /// # Errors
    ///
    /// If the path is not beneath the root: absolute, through `..`, or the root
    /// itself.
    pub fn insert(&mut self, path: &Path, mut entry: ManifestEntry) -> Result<(), BadName> {
        let path = relative(path.as_os_str().as_bytes())?;
        entry.mode &= PERMISSIONS;
        self.entries.insert(path, entry);
        Ok(())
    }

    /// What is at a path.
    pub fn get(&self, path: &Path) -> Option<&ManifestEntry> {
        self.entries.get(path)
    }

    /// Everything in it, sorted such that a directory comes right before what
    /// is in it.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Path, &ManifestEntry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_path(), entry))
    }

    /// How many paths are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps the text of the files that have this digest. That it is the
    /// digest of the text is the caller's word.
    pub fn keep_text(&mut self, sha256: [u8; 32], text: Vec<u8>) {
        self.texts.insert(sha256, text);
    }

    /// The text of the files that have this digest, if it was kept.
    pub fn text(&self, sha256: &[u8; 32]) -> Option<&[u8]> {
        self.texts.get(sha256).map(Vec::as_slice)
    }
}
