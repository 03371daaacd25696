//! Whether somebody may write an image, and keeping them from it.
//!
//! QEMU says what it does with an image by locking single bytes of it for
//! reading: byte 100 + n if it does n, byte 200 + n if it allows nobody else to
//! do n. After it has locked its own bytes it looks whether somebody holds the
//! opposite ones. We do the same, as one who reads and allows no writers or who
//! writes alone, in the same order, so of two that start at the same moment at
//! least one is refused. Other VMMs lock the whole file, with fcntl(2) or
//! flock(2).
//!
//! Such a lock belongs to what open(2) made. A VMM that inherits it has the lock
//! too, and is not in its own way.

use std::{
    fs::File,
    io,
    ops::{Deref, Range},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
};
use rustix::fs::{FlockOperation, flock};

/// Where QEMU says what it does.
const DOES: i64 = 100;
/// Where QEMU says what it allows nobody else to do.
const FORBIDS: i64 = 200;
/// To read what belongs together.
const READ: i64 = 0;
const WRITE: i64 = 1;
const RESIZE: i64 = 3;

/// What was found out about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockHolder {
    /// Nobody does what we do not want, nor can they, if they ask, while the
    /// file is open.
    Ours,
    /// Somebody may be doing it.
    Others,
}

/// A file whose locks are given back when this is dropped.
///
/// Closing it is not enough: a process that another thread has just forked has
/// a copy, with the locks, until it executes its program.
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

    /// The file for somebody else, with its locks.
    pub(super) fn hand_over(mut self) -> io::Result<File> {
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
            let _ = flock(&self.file, FlockOperation::Unlock);
            let nothing = lock_of(libc::F_UNLCK, 0..0);
            let _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&nothing));
        }
    }
}

/// Says that we read the file, until it is closed, and tells whether somebody
/// may be writing it.
pub(super) fn lock_for_reading(file: &File) -> io::Result<LockHolder> {
    lock(
        file,
        FlockOperation::NonBlockingLockShared,
        &[DOES + READ, FORBIDS + WRITE, FORBIDS + RESIZE],
        &[DOES + WRITE, DOES + RESIZE, FORBIDS + READ],
    )
}

/// Says that we, or who inherits the file from us, write it until it is closed,
/// and tells whether somebody else may be writing it or counts on nobody doing
/// so.
pub(super) fn lock_for_writing(file: &File) -> io::Result<LockHolder> {
    lock(
        file,
        FlockOperation::NonBlockingLockExclusive,
        &[DOES + READ, DOES + WRITE, FORBIDS + WRITE, FORBIDS + RESIZE],
        &[DOES + WRITE, DOES + RESIZE, FORBIDS + READ, FORBIDS + WRITE],
    )
}

fn lock(
    file: &File,
    whole: FlockOperation,
    ours: &[i64],
    opposite: &[i64],
) -> io::Result<LockHolder> {
    match flock(file, whole) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(LockHolder::Others),
        Err(errno) => return Err(errno.into()),
    }
    for byte in ours {
        let ours = lock_of(libc::F_RDLCK, *byte..byte + 1);
        match fcntl(file, FcntlArg::F_OFD_SETLK(&ours)) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(LockHolder::Others),
            Err(errno) => return Err(errno.into()),
        }
    }
    let opposite = opposite
        .iter()
        .map(|byte| lock_of(libc::F_WRLCK, *byte..byte + 1));
    let whole_file = lock_of(libc::F_RDLCK, 0..0);
    for mut wanted in opposite.chain([whole_file]) {
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut wanted))?;
        if i32::from(wanted.l_type) != libc::F_UNLCK {
            return Ok(LockHolder::Others);
        }
    }
    Ok(LockHolder::Ours)
}

/// A lock of these bytes. An empty range at 0 is the whole file: fcntl(2).
fn lock_of(kind: libc::c_int, bytes: Range<i64>) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start,
        l_len: bytes.end - bytes.start,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_unless_it_is_handed_over() {
        let disk = tempfile::NamedTempFile::new().unwrap();
        let locked = || {
            let file = LockedFile::new(File::open(disk.path()).unwrap());
            assert_eq!(lock_for_reading(&file).unwrap(), LockHolder::Ours);
            file
        };
        let use_of_writer = || {
            let file = LockedFile::new(disk.reopen().unwrap());
            lock_for_writing(&file).unwrap()
        };
        let file = locked();
        // As a child has that was forked just now.
        let copy = file.try_clone().unwrap();
        assert_eq!(use_of_writer(), LockHolder::Others);
        drop(file);
        assert_eq!(use_of_writer(), LockHolder::Ours);
        drop(copy);

        let of_somebody_else = locked().hand_over().unwrap();
        assert_eq!(use_of_writer(), LockHolder::Others);
        drop(of_somebody_else);
    }
}
