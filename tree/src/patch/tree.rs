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

/// The type of a file in its mode, and a file that nothing is said about.
const TYPE: u32 = 0o170_000;
const USUAL: u32 = 0o100_644;

/// A regular file or a symlink, as patches know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// The mode with the type, as in `st_mode`.
    pub mode: u32,
    /// What is in the file, or where the symlink points.
    pub content: Vec<u8>,
}

impl Patch<'_> {
    /// Every path that it reads, makes or removes.
    pub fn paths(&self) -> BTreeSet<&Path> {
        let paths = self.files.iter();
        paths
            .flat_map(|file| [file.old_path(), file.new_path()])
            .flatten()
            .collect()
    }

    /// Applies all of it to a tree, and tells what is to be written, and with
    /// `None` what is to be removed. The tree holds those of [`Patch::paths`]
    /// that exist.
    ///
    /// # Errors
    ///
    /// If anything of it does not fit. Then nothing should be written.
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
        let leaving: BTreeSet<PathBuf> = changes.keys().cloned().collect();
        for file in &self.files {
            let is_there = |path: &Path| tree.contains_key(path) && !leaving.contains(path);
            let is_made = file.new_path != file.old_path;
            if is_made && file.new_path().is_some_and(is_there) {
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
        let told = self.old_mode.unwrap_or(USUAL) & TYPE;
        if old.is_some_and(|old| old.mode & TYPE != told) {
            return Err(Mismatch::new(self.path(), MismatchReason::OtherType));
        }
        let content = self.apply(old.map(|old| old.content.as_slice()), options)?;
        let kept = old.map_or(USUAL, |old| old.mode);
        Ok(content.map(|content| TreeFile {
            mode: self.new_mode.unwrap_or(kept),
            content,
        }))
    }
}
