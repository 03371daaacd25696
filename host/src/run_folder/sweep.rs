use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::{LOCK, base::Base, cgroup::Cgroups};
use crate::random::random_bytes;

/// Shorter than when a folder is dropped, because meanwhile everybody else who
/// starts a VM waits.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Removes what dead programs of this user have left in the base: folders whose
/// lock nobody holds, with their cgroups. Ignores folders of running programs,
/// and a base that belongs to another user.
///
/// It waits while another process creates a folder, which takes a moment.
pub(crate) fn sweep(base: &Path) {
    if !base.exists() {
        return;
    }
    match Base::open_existing(base) {
        Ok(base) => sweep_locked(&base),
        Err(error) => tracing::debug!(%error, "run folders cannot be swept"),
    }
}

/// Same as [`sweep`], for callers that have locked the base already.
pub(super) fn sweep_locked(base: &Base) {
    let Ok(entries) = fs::read_dir(&base.path) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if !is_abandoned(&path) {
            continue;
        }
        tracing::debug!(folder = %path.display(), "removing what a dead program left");
        if !Cgroups::at(&path).remove(KILL_TIMEOUT) {
            continue;
        }
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(folder = %path.display(), %error, "cannot be removed");
        }
    }
}

/// Returns whether nobody holds the lock of a folder. This cannot race: locks
/// are created and taken only while the base is locked, which the caller has
/// done.
fn is_abandoned(folder: &Path) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(folder.join(LOCK), flags, Mode::empty()) {
        Ok(lock) => flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // It is incomplete, or partly removed.
        Err(rustix::io::Errno::NOENT) => true,
        // Not a run folder.
        Err(_) => false,
    }
}

/// Returns the name of a folder while it is being removed. No id begins with a
/// dot and a space.
pub(super) fn removal_name(folder: &Path) -> PathBuf {
    let random = random_bytes().map_or(0, u64::from_ne_bytes);
    let mut name = OsString::from(". ");
    name.push(folder.file_name().unwrap_or_default());
    name.push(format!(" {random:x}"));
    folder.with_file_name(name)
}
