//! Locks that show whether an image is in use, compatible with QEMU's.
//!
//! QEMU announces what it does with an image by taking read locks on single
//! bytes: byte 100 + n for an operation n that it performs, byte 200 + n for an
//! operation n that it does not allow others to perform. After that, it checks
//! whether another process holds one of the conflicting bytes. This module does
//! the same in the same order, as a reader that allows no writers or as the
//! only writer. Of two processes that start at the same time, at least one is
//! refused. Other VMMs lock the whole file, with fcntl(2) or flock(2). As the only
//! writer this module checks that nobody has the whole file locked, and then locks it
//! so that nobody else can lock it exclusively.
//!
//! The locks belong to the open file description. A VMM that inherits the
//! descriptor holds them too, and does not conflict with itself.
//!
//! Only Linux has such locks of single bytes. Elsewhere this module looks for
//! QEMU's locks and then locks the whole file, so a QEMU that starts between
//! these two steps is not noticed (`platform/portable.rs`). Nor is one that
//! takes no locks: without locks of open file descriptions, QEMU takes them only
//! with its option `locking=on`.

use std::{fs::File, io, ops::Deref};

use rustix::fs::FlockOperation;

use super::platform::platform;

/// First byte for operations that a process performs (`RAW_LOCK_PERM_BASE` in
/// QEMU).
const PERM: i64 = 100;
/// First byte for operations that a process does not allow to others
/// (`RAW_LOCK_SHARED_BASE` in QEMU).
const DENY: i64 = 200;
/// The operations, as in QEMU's `BLK_PERM_*`. This one is a consistent read.
const READ: i64 = 0;
const WRITE: i64 = 1;
const RESIZE: i64 = 3;

/// The result of taking the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockOutcome {
    /// The locks are held. Until they are released, processes that respect them
    /// cannot perform conflicting operations.
    Acquired,
    /// Another process holds a conflicting lock.
    InUse,
}

/// A file whose locks are released on drop.
///
/// Closing the file is not enough: a child process that another thread has just
/// forked holds a copy of the descriptor, and with it the locks, until it calls
/// execve(2).
#[derive(Debug)]
pub(super) struct LockedFile {
    file: File,
    unlocks: bool,
}

impl LockedFile {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            unlocks: true,
        }
    }

    /// Returns the file with its locks, which are then not released on drop.
    pub(super) fn into_file(mut self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        self.unlocks = false;
        Ok(file)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.unlocks {
            platform().unlock(&self.file);
        }
    }
}

/// Locks the file for reading until it is closed, unless another process may be
/// writing to it.
pub(super) fn lock_for_reading(file: &File) -> io::Result<LockOutcome> {
    platform().lock(
        file,
        FlockOperation::NonBlockingLockShared,
        &[PERM + READ, DENY + WRITE, DENY + RESIZE],
        &[PERM + WRITE, PERM + RESIZE, DENY + READ],
    )
}

/// Locks the file for writing until this process and all that inherit it have
/// closed it, unless another process may be writing to it or relies on it not
/// being written.
pub(super) fn lock_for_writing(file: &File) -> io::Result<LockOutcome> {
    platform().lock(
        file,
        FlockOperation::NonBlockingLockExclusive,
        &[PERM + READ, PERM + WRITE, DENY + WRITE, DENY + RESIZE],
        &[PERM + WRITE, PERM + RESIZE, DENY + READ, DENY + WRITE],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_unless_it_is_handed_over() {
        let disk = tempfile::NamedTempFile::new().unwrap();
        let locked = || {
            let file = LockedFile::new(File::open(disk.path()).unwrap());
            assert_eq!(lock_for_reading(&file).unwrap(), LockOutcome::Acquired);
            file
        };
        let lock_as_writer = || {
            let file = LockedFile::new(disk.reopen().unwrap());
            lock_for_writing(&file).unwrap()
        };
        let file = locked();
        // Like the copy in a child process that was just forked.
        let copy = file.try_clone().unwrap();
        assert_eq!(lock_as_writer(), LockOutcome::InUse);
        drop(file);
        assert_eq!(lock_as_writer(), LockOutcome::Acquired);
        drop(copy);

        let handed_over = locked().into_file().unwrap();
        assert_eq!(lock_as_writer(), LockOutcome::InUse);
        drop(handed_over);
    }
}
