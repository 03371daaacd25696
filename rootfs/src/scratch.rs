//! Temporary folders that are removed even if their process was killed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;

use crate::Error;

/// Prefix of the names of these folders.
const PREFIX: &str = "vmcell-scratch-";
/// Age at which an unlocked folder is stale: locking a new one takes far less.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// A private temporary folder. It is removed on drop. If its process was killed before, the next
/// process that creates a scratch folder removes it.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    folder: TempDir,
    /// Holds the lock that marks the folder as in use. The kernel releases it with the process.
    _lock: File,
}

impl ScratchFolder {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::new_in(&env::temp_dir())
    }

    fn new_in(parent: &Path) -> Result<Self, Error> {
        remove_stale(parent);
        let make = || {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            let lock = lock(folder.path())?;
            Ok(Self {
                folder,
                _lock: lock,
            })
        };
        make().map_err(|source| Error::Write {
            path: parent.to_owned(),
            source,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Takes the lock of a folder. Fails at once if it is held.
fn lock(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(folder)?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened)
}

/// Removes the folders of killed processes. Ignores errors.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|found| found.modified());
        let age = changed
            .ok()
            .and_then(|changed| SystemTime::now().duration_since(changed).ok());
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && age.is_some_and(|age| age > STALE_AFTER) {
            let path = entry.path();
            if let Ok(_unused) = lock(&path) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_stale(folder: &Path) {
        let long_ago = SystemTime::now() - 2 * STALE_AFTER;
        let opened = File::open(folder).unwrap();
        opened.set_modified(long_ago).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_stays() {
        let parent = TempDir::new().unwrap();
        let in_use = ScratchFolder::new_in(parent.path()).unwrap();
        let [left, fresh] = ["left", "fresh"].map(|name| {
            let path = parent.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "").unwrap();
            path
        });
        let elsewhere = parent.path().join("somebody else's");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, parent.path().join(format!("{PREFIX}link")))
            .unwrap();
        for folder in [in_use.path(), &left, &elsewhere] {
            make_stale(folder);
        }

        let second = ScratchFolder::new_in(parent.path()).unwrap();
        assert!(in_use.path().exists() && second.path().exists());
        assert!(!left.exists() && fresh.exists() && elsewhere.exists());
    }

    #[test]
    fn a_folder_goes_with_its_last_use() {
        let parent = TempDir::new().unwrap();
        let scratch = ScratchFolder::new_in(parent.path()).unwrap();
        fs::write(scratch.path().join("file"), "").unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
