//! The blobs that were pulled into the folder of a cache.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use crate::Error;

/// Where they are, as in a layout of OCI.
pub(crate) const BLOBS: &str = "blobs/sha256";
/// The file that is locked by those who need them.
const LOCK: &str = "blobs/lock";

/// Keeps blobs from being pruned, until the file is closed.
#[cfg(feature = "registry")]
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let lock = || {
        fs::create_dir_all(folder.join(BLOBS))?;
        let file = open(&path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
        Ok(file)
    };
    lock().map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })
}

fn open(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Removes all blobs but these, unless some are in use now. Returns how much they took.
pub(crate) fn prune(folder: &Path, needed: &BTreeSet<String>) -> Result<u64, Error> {
    let blobs = folder.join(BLOBS);
    let Ok(entries) = fs::read_dir(&blobs) else {
        return Ok(0);
    };
    let lock = open(&folder.join(LOCK));
    let is_locked = lock.as_ref().is_ok_and(|lock| {
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        retry_on_intr(|| flock(lock, exclusive)).is_ok()
    });
    if !is_locked {
        return Ok(0);
    }
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
