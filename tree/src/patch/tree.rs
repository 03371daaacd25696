use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    apply::ApplyOptions,
    file::{FilePatch, FilePatchKind},
    mismatch::{Mismatch, MismatchReason},
    parse::Patch,
};

/// The file type bits of a mode, and the mode of new files.
const TYPE_MASK: u32 = 0o170_000;
const DEFAULT_MODE: u32 = 0o100_644;

/// How many bytes all parts of a patch together may read and write.
const MAX_BYTES: usize = 2 << 30;

/// A regular file or a symlink, to which a patch applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// The mode with the file type, as in `st_mode`.
    pub mode: u32,
    /// The content of the file, or the target of the symlink.
    pub content: Vec<u8>,
}

impl Patch<'_> {
    /// Returns every path that the patch reads, creates or deletes.
    pub fn paths(&self) -> BTreeSet<&Path> {
        let paths = self.files.iter();
        paths
            .flat_map(|file| [file.old_path(), file.new_path()])
            .flatten()
            .collect()
    }

    /// Applies the patch to a tree. Returns the new files, and `None` for the
    /// paths to delete. `tree` must contain those of [`Patch::paths`] that
    /// exist.
    ///
    /// A file that is to be renamed may have its new name already.
    ///
    /// # Errors
    ///
    /// If any part does not match, or if all parts together read and write more
    /// than 2 GiB. Then the caller should write nothing.
    pub fn apply(
        &self,
        tree: &BTreeMap<PathBuf, TreeFile>,
        options: ApplyOptions,
    ) -> Result<BTreeMap<PathBuf, Option<TreeFile>>, Mismatch> {
        let mut state = TreeState::new(tree, &self.files);
        for file in &self.files {
            state
                .apply(file, options)
                .map_err(|reason| Mismatch::new(file.path(), reason))?;
        }
        Ok(state.changes)
    }
}

/// A tree while the parts of a patch are applied.
struct TreeState<'a> {
    old: &'a BTreeMap<PathBuf, TreeFile>,
    /// Old files that a part has changed, renamed or deleted. Later parts with
    /// these paths are for the new files.
    used: BTreeSet<&'a Path>,
    /// Paths that some part renames or deletes, so that another part may create
    /// a file there.
    removed: BTreeSet<&'a Path>,
    changes: BTreeMap<PathBuf, Option<TreeFile>>,
    /// How many more bytes may be read and written.
    bytes_left: usize,
}

impl<'a> TreeState<'a> {
    fn new(old: &'a BTreeMap<PathBuf, TreeFile>, files: &'a [FilePatch<'_>]) -> Self {
        let removing = files
            .iter()
            .filter(|file| matches!(file.kind, FilePatchKind::Deleted | FilePatchKind::Renamed));
        Self {
            old,
            used: BTreeSet::new(),
            removed: removing.filter_map(|file| file.old_path()).collect(),
            changes: BTreeMap::new(),
            bytes_left: MAX_BYTES,
        }
    }

    fn apply(
        &mut self,
        file: &'a FilePatch<'_>,
        options: ApplyOptions,
    ) -> Result<(), MismatchReason> {
        let source = match self.is_renamed_already(file) {
            true => file.new_path(),
            false => file.old_path(),
        };
        if file.new_path() != source && file.new_path().is_some_and(|path| self.is_taken(path)) {
            return Err(MismatchReason::Exists);
        }
        let old = match file.kind {
            FilePatchKind::Copied => source.and_then(|path| self.old.get(path).or(self.find(path))),
            _ => source.and_then(|path| self.find(path)),
        };
        let new = file.apply_to(old, options).map_err(|error| error.reason)?;
        let read = old.map_or(0, |old| old.content.len());
        let written = new.as_ref().map_or(0, |new| new.content.len());
        self.bytes_left = self
            .bytes_left
            .checked_sub(read.saturating_add(written))
            .ok_or(MismatchReason::TooManyBytes)?;
        if let Some(path) = source.filter(|_| file.kind != FilePatchKind::Copied) {
            let is_old = self.old.contains_key(path) && self.used.insert(path);
            match self.changes.get(path) {
                // Another part has created a file at the path of the old one.
                Some(Some(_)) if is_old => {}
                _ => drop(self.changes.insert(path.to_owned(), None)),
            }
        }
        if let (Some(path), Some(new)) = (file.new_path(), new) {
            self.changes.insert(path.to_owned(), Some(new));
        }
        Ok(())
    }

    /// Returns whether a file that is to be renamed is missing, and may be the
    /// one at its new path.
    fn is_renamed_already(&self, file: &FilePatch<'_>) -> bool {
        let (Some(old), Some(new)) = (file.old_path(), file.new_path()) else {
            return false;
        };
        file.kind == FilePatchKind::Renamed
            && self.find(old).is_none()
            && !self.removed.contains(new)
    }

    /// Returns the file that a part with this path is for: the old one, unless
    /// an earlier part has changed it.
    fn find(&self, path: &Path) -> Option<&TreeFile> {
        match self.old.get(path) {
            Some(old) if !self.used.contains(path) => Some(old),
            _ => self.changes.get(path)?.as_ref(),
        }
    }

    /// Returns whether no file can be created at a path.
    fn is_taken(&self, path: &Path) -> bool {
        match self.changes.get(path) {
            Some(change) => change.is_some(),
            None => self.old.contains_key(path) && !self.removed.contains(path),
        }
    }
}

impl FilePatch<'_> {
    fn apply_to(
        &self,
        old: Option<&TreeFile>,
        options: ApplyOptions,
    ) -> Result<Option<TreeFile>, Mismatch> {
        let expected_type = self.old_mode.unwrap_or(DEFAULT_MODE) & TYPE_MASK;
        if old.is_some_and(|old| old.mode & TYPE_MASK != expected_type) {
            return Err(Mismatch::new(self.path(), MismatchReason::OtherType));
        }
        let content = self.apply(old.map(|old| old.content.as_slice()), options)?;
        let old_mode = old.map_or(DEFAULT_MODE, |old| old.mode);
        Ok(content.map(|content| TreeFile {
            mode: self.new_mode.unwrap_or(old_mode),
            content,
        }))
    }
}
