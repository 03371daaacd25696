//! Whether somebody may write an image, and keeping them from it.
//!
//! QEMU says what it does with an image by locking single bytes of it for
//! reading: byte 100 + n if it does n, byte 200 + n if it allows nobody else to
//! do n. After it has locked its own bytes it looks whether somebody holds the
//! opposite ones. We do the same as a reader that allows no writers, in the same
//! order, so of two that start at the same moment at least one is refused. Other
//! VMMs lock the whole file, with fcntl(2) or flock(2).

use std::{fs::File, io, ops::Range};

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
pub(super) enum Use {
    /// Nobody writes it, nor can they, if they ask, while the file is open.
    ReadOnly,
    /// Somebody may be writing it.
    MayBeWritten,
}

/// Says that we read the file, until it is closed, and tells whether somebody
/// may be writing it.
pub(super) fn lock_for_reading(file: &File) -> io::Result<Use> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Use::MayBeWritten),
        Err(errno) => return Err(errno.into()),
    }
    for byte in [DOES + READ, FORBIDS + WRITE, FORBIDS + RESIZE] {
        let ours = lock(libc::F_RDLCK, byte..byte + 1);
        match fcntl(file, FcntlArg::F_OFD_SETLK(&ours)) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(Use::MayBeWritten),
            Err(errno) => return Err(errno.into()),
        }
    }
    let opposite = [DOES + WRITE, DOES + RESIZE, FORBIDS + READ]
        .map(|byte| lock(libc::F_WRLCK, byte..byte + 1));
    let whole_file = lock(libc::F_RDLCK, 0..0);
    for mut wanted in opposite.into_iter().chain([whole_file]) {
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut wanted))?;
        if i32::from(wanted.l_type) != libc::F_UNLCK {
            return Ok(Use::MayBeWritten);
        }
    }
    Ok(Use::ReadOnly)
}

/// A lock of these bytes. An empty range at 0 is the whole file: fcntl(2).
fn lock(kind: libc::c_int, bytes: Range<i64>) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start,
        l_len: bytes.end - bytes.start,
        l_pid: 0,
    }
}
