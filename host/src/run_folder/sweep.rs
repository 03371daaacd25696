use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::{LOCK, base::Base, cgroup::Cgroups};
use crate::random::random_bytes;

/// As in a folder's own end, but everybody else who starts a VM waits meanwhile.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Removes what dead programs of this user have left in the base: folders whose
/// lock nobody holds, with their cgroups. Those of living ones are not touched,
/// nor is a base that is not ours.
///
/// It waits while somebody makes a folder: a moment.
pub(crate) fn sweep(base: &Path) {
    if !base.exists() {
        return;
    }
    match Base::open_existing(base) {
        Ok(base) => sweep_locked(&base),
        Err(error) => tracing::debug!(%error, "run folders cannot be swept"),
    }
}

/// As [`sweep`], for who has the base already.
pub(super) fn sweep_locked(base: &Base) {
    let Ok(entries) = fs::read_dir(&base.path) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if !is_dead(&path) {
            continue;
        }
        tracing::debug!(folder = %path.display(), "what a dead program left is removed");
        if !Cgroups::at(&path).remove(KILL_TIMEOUT) {
            continue;
        }
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(folder = %path.display(), %error, "cannot be removed");
        }
    }
}

/// Whether nobody holds the lock of a folder. Nobody can be about to: locks are
/// made and taken by who has the base, and that is us.
fn is_dead(folder: &Path) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(folder.join(LOCK), flags, Mode::empty()) {
        Ok(lock) => flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // It was never finished, or is almost gone.
        Err(rustix::io::Errno::NOENT) => true,
        // Whatever it is, it is none of ours.
        Err(_) => false,
    }
}

/// What a folder is called while it is being removed: no id begins with a dot
/// and a space.
pub(super) fn doomed_name(folder: &Path) -> PathBuf {
    let chance = random_bytes().map_or(0, u64::from_ne_bytes);
    let mut name = OsString::from(". ");
    name.push(folder.file_name().unwrap_or_default());
    name.push(format!(" {chance:x}"));
    folder.with_file_name(name)
}
