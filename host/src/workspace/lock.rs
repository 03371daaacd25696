//! Locks of files that end with the program that holds them.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
};

/// A file that this program has locked. The lock is released when this is dropped.
#[derive(Debug)]
pub(super) struct FileLock(Option<File>);

/// What is done to a lock.
#[derive(Clone, Copy, Debug)]
enum LockType {
    Write,
    Unlocked,
}

impl FileLock {
    /// Waits until nobody else has the lock. Returns `None` if the file was removed or
    /// replaced meanwhile, or if its folder was removed.
    pub(super) fn wait(path: &Path) -> io::Result<Option<Self>> {
        let file = match open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        loop {
            match fcntl(&file, FcntlArg::F_OFD_SETLKW(&whole(LockType::Write))) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let is_same = is_at(&file, path);
        let lock = Self(Some(file));
        Ok(is_same.then_some(lock))
    }

    /// Takes the lock if nobody has it.
    pub(super) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole(LockType::Write))) {
            Ok(_) => Ok(Some(Self(Some(file)))),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns whether a program has the lock, without taking it for a moment: who takes
    /// it at the same time gets it.
    pub(super) fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let mut lock = whole(LockType::Write);
        fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock))?;
        Ok(i32::from(lock.l_type) != libc::F_UNLCK)
    }

    /// Returns the file that is locked, for a process that inherits the lock: it is held
    /// until the last of them releases it or closes the file.
    pub(super) fn into_descriptor(mut self) -> Option<OwnedFd> {
        self.0.take().map(OwnedFd::from)
    }

    /// Takes over a lock from another process.
    pub(super) fn from_descriptor(file: OwnedFd) -> Self {
        Self(Some(File::from(file)))
    }
}

/// Returns whether a file still has its name.
fn is_at(file: &File, path: &Path) -> bool {
    let is_same = |own: std::fs::Metadata| {
        std::fs::metadata(path)
            .is_ok_and(|other| (own.dev(), own.ino()) == (other.dev(), other.ino()))
    };
    file.metadata().is_ok_and(is_same)
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let Some(file) = &self.0 else {
            return;
        };
        // Closing the file is not enough: a process that was just forked has it, too.
        let unlocked = fcntl(file, FcntlArg::F_OFD_SETLK(&whole(LockType::Unlocked)));
        if let Err(errno) = unlocked {
            tracing::warn!(%errno, "cannot release a lock");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}

/// A lock of all bytes of a file: fcntl(2).
fn whole(kind: LockType) -> libc::flock {
    libc::flock {
        l_type: match kind {
            LockType::Write => libc::F_WRLCK as libc::c_short,
            LockType::Unlocked => libc::F_UNLCK as libc::c_short,
        },
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_and_seen_by_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!FileLock::is_held(&path).unwrap());
        let lock = FileLock::try_take(&path).unwrap().unwrap();
        assert!(FileLock::is_held(&path).unwrap());
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(lock);
        assert!(!FileLock::is_held(&path).unwrap());
        assert!(FileLock::wait(&path).unwrap().is_some());
    }

    #[test]
    fn who_waits_for_a_file_that_is_removed_gets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent/lock");
        assert!(FileLock::wait(&absent).unwrap().is_none());
        let path = folder.path().join("lock");
        let lock = FileLock::try_take(&path).unwrap().unwrap();
        let waiting = {
            let path = path.clone();
            let (sender, opened) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                let file = open(&path).unwrap();
                sender.send(()).unwrap();
                fcntl(&file, FcntlArg::F_OFD_SETLKW(&whole(LockType::Write))).unwrap();
                is_at(&file, &path)
            });
            opened.recv().unwrap();
            thread
        };
        std::fs::remove_file(&path).unwrap();
        drop(lock);
        assert!(!waiting.join().unwrap());
    }
}
