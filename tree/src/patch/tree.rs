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
    /// # Errors
    ///
    /// If any part does not match. Then the caller should write nothing.
    pub fn apply(
        &self,
        tree: &BTreeMap<PathBuf, TreeFile>,
        options: ApplyOptions,
    ) -> Result<BTreeMap<PathBuf, Option<TreeFile>>, Mismatch> {
        let mut changes: BTreeMap<PathBuf, Option<TreeFile>> = BTreeMap::new();
        for file in &self.files {
            if matches!(file.kind, FilePatchKind::Deleted | FilePatchKind::Renamed) {
                changes.extend(file.old_path.clone().map(|path| (path, None)));
            }
        }
        let removed: BTreeSet<PathBuf> = changes.keys().cloned().collect();
        for file in &self.files {
            let exists = |path: &Path| tree.contains_key(path) && !removed.contains(path);
            let is_created = file.new_path != file.old_path;
            if is_created && file.new_path().is_some_and(exists) {
                return Err(Mismatch::new(file.path(), MismatchReason::Exists));
            }
            let old = file.old_path().and_then(|path| tree.get(path));
            let new = file.apply_to(old, options)?;
            if let (Some(path), Some(new)) = (&file.new_path, new) {
                changes.insert(path.clone(), Some(new));
            }
        }
        Ok(changes)
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
