//! Files in the folder of a cache that are kept as long as a record names them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use crate::Error;

/// Where blobs of images are, as in a layout of OCI.
pub(crate) const BLOBS: &str = "blobs/sha256";

/// A folder of such files.
#[derive(Clone, Debug)]
pub(crate) struct KeptFiles {
    folder: PathBuf,
    /// The file that is locked by those who need them.
    lock: PathBuf,
}

impl KeptFiles {
    /// The blobs of images that were pulled.
    pub(crate) fn blobs(cache: &Path) -> Self {
        Self {
            folder: cache.join(BLOBS),
            lock: cache.join("blobs/lock"),
        }
    }

    /// The layers of steps of builds.
    pub(crate) fn layers(cache: &Path) -> Self {
        Self {
            folder: cache.join("layers"),
            lock: cache.join("layers.lock"),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps all from being pruned, until the file is closed.
    pub(crate) fn lock(&self) -> Result<File, Error> {
        let lock = || {
            fs::create_dir_all(&self.folder)?;
            let file = self.open_lock()?;
            retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
            Ok(file)
        };
        lock().map_err(|source| Error::Write {
            path: self.lock.clone(),
            source,
        })
    }

    fn open_lock(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.lock)
    }

    /// Keeps others from using them, until the file is closed. `None` if somebody does.
    pub(crate) fn lock_for_pruning(&self) -> Option<File> {
        let lock = self.open_lock().ok()?;
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        retry_on_intr(|| flock(&lock, exclusive)).ok()?;
        Some(lock)
    }

    /// Removes all but these, by their names. Returns how much they took. Nobody may use them:
    /// see [`lock_for_pruning`](Self::lock_for_pruning).
    pub(crate) fn prune(&self, needed: &BTreeSet<String>) -> Result<u64, Error> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Ok(0);
        };
        let mut bytes = 0;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| needed.contains(name)) {
                continue;
            }
            let path = entry.path();
            bytes += entry.metadata().map_or(0, |found| found.blocks() * 512);
            fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
        }
        Ok(bytes)
    }
}
