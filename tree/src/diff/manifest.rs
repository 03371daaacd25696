use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::patch::{BadName, relative_path};

/// The permission bits of a mode.
pub(super) const PERMISSIONS: u32 = 0o7777;

/// A list of all paths below the root of a tree, with a digest of each file. It
/// is small enough to keep, and shows later what has changed.
///
/// It can also keep the texts of files, to show later which lines have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub(super) entries: BTreeMap<PathBuf, ManifestEntry>,
    pub(super) texts: BTreeMap<[u8; 32], Vec<u8>>,
}

/// The entry at a path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The kind of entry, with its content.
    pub kind: ManifestKind,
    /// The permission bits without the file type: `0o644`.
    pub mode: u32,
}

/// The kind of a [`ManifestEntry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestKind {
    /// A regular file.
    File {
        /// The length in bytes.
        size: u64,
        /// The SHA-256 of the content.
        sha256: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symlink.
    Symlink {
        /// The target.
        target: Vec<u8>,
    },
    /// Anything else: a device, a socket, a pipe.
    Other,
}

impl Manifest {
    /// Creates an empty manifest.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the entry at a path, and replaces an earlier one. Ignores all bits
    /// of the mode except the permissions.
    ///
    /// # Errors
    ///
    /// If the path is not below the root: it is absolute, contains `..`, or is
    /// the root itself.
    pub fn insert(&mut self, path: &Path, mut entry: ManifestEntry) -> Result<(), BadName> {
        let path = relative_path(path.as_os_str().as_bytes())?;
        entry.mode &= PERMISSIONS;
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Returns the entry at a path.
    pub fn get(&self, path: &Path) -> Option<&ManifestEntry> {
        self.entries.get(path)
    }

    /// Returns all entries, sorted so that a directory comes right before its
    /// entries.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Path, &ManifestEntry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_path(), entry))
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Stores the text of the files with this digest. The caller must make sure
    /// that it is the digest of the text.
    pub fn keep_text(&mut self, sha256: [u8; 32], text: Vec<u8>) {
        self.texts.insert(sha256, text);
    }

    /// Returns the text of the files with this digest, if it was stored.
    pub fn text(&self, sha256: &[u8; 32]) -> Option<&[u8]> {
        self.texts.get(sha256).map(Vec::as_slice)
    }
}
