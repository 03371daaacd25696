use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::snapshot::LoadedSnapshot;

/// The templates that this program has used last. Loading one takes longer than starting
/// a VM of it.
static RECENT: Mutex<VecDeque<Recent>> = Mutex::new(VecDeque::new());

/// How many of them are kept. Each takes as much memory as its VM had in use.
const MAX_RECENT: usize = 4;

struct Recent {
    path: PathBuf,
    folder: FolderId,
    template: Arc<LoadedSnapshot>,
}

/// Identifies a folder: one that was made again has another number or time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderId(u64, u64, i64, i64);

impl FolderId {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let folder = fs::metadata(path)?;
        let (device, inode) = (folder.dev(), folder.ino());
        Ok(Self(device, inode, folder.mtime(), folder.mtime_nsec()))
    }
}

/// Returns the template in this folder, if it was used before.
pub(super) fn find(path: &Path, folder: FolderId) -> Option<Arc<LoadedSnapshot>> {
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |it: &Recent| it.path == path && it.folder == folder;
    let place = recent.iter().position(is_same)?;
    let found = recent.remove(place)?;
    let template = found.template.clone();
    recent.push_front(found);
    Some(template)
}

/// Keeps a template that was loaded from this folder.
pub(super) fn keep(path: PathBuf, folder: FolderId, template: Arc<LoadedSnapshot>) {
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    recent.retain(|it| it.path != path);
    recent.push_front(Recent {
        path,
        folder,
        template,
    });
    recent.truncate(MAX_RECENT);
}

/// Forgets the template in this folder.
pub(super) fn forget(path: &Path) {
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    recent.retain(|it| it.path != path);
}
