use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd as _},
        unix::ffi::OsStringExt as _,
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno as NixErrno,
    fcntl::{FcntlArg, fcntl},
};
use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, open, readlink},
    io::Errno,
};

use super::{LockType, Platform, conflicting, lock_of};
use crate::image::{error::ImageError, lock::LockOutcome, source::Source};

/// The calls of Linux.
pub(super) struct Linux;

impl Platform for Linux {
    fn open(
        &self,
        path: &Path,
        is_allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<(File, PathBuf), ImageError> {
        // `O_PATH` refers to the file without opening it, since opening a
        // device or a pipe can have side effects. What is checked and then
        // opened is this file, whatever happens to its name: open(2), proc(5).
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = open(path, flags, Mode::empty()).map_err(ImageError::read(path))?;
        let stat = fstat(&found).map_err(ImageError::read(path))?;
        let link = proc_fd_path(&found);
        let real = real_path(&link).map_err(ImageError::read(path))?;
        if !is_allowed(&real) {
            return Err(ImageError::BackingNotAllowed { path: real });
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ImageError::NotAFile { path: real });
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = open(&link, flags, Mode::empty()).map_err(ImageError::read(path))?;
        Ok((File::from(file), real))
    }

    fn reopen_for_writing(&self, source: &Source) -> io::Result<File> {
        let link = proc_fd_path(&source.file.as_fd());
        let file = open(link, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(File::from(file))
    }

    fn lock(
        &self,
        file: &File,
        whole: FlockOperation,
        ours: &[i64],
        opposite: &[i64],
    ) -> io::Result<LockOutcome> {
        match flock(file, whole) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(LockOutcome::InUse),
            Err(errno) => return Err(errno.into()),
        }
        for byte in ours {
            let ours = lock_of(LockType::Read, *byte..byte + 1);
            match fcntl(file, FcntlArg::F_OFD_SETLK(&ours)) {
                Ok(_) => {}
                Err(NixErrno::EAGAIN | NixErrno::EACCES) => return Ok(LockOutcome::InUse),
                Err(errno) => return Err(errno.into()),
            }
        }
        for mut wanted in conflicting(opposite) {
            fcntl(file, FcntlArg::F_OFD_GETLK(&mut wanted))?;
            if !LockType::Unlocked.is_type_of(&wanted) {
                return Ok(LockOutcome::InUse);
            }
        }
        // A QEMU that goes on to another layer releases its locks of single bytes, but
        // not this one, which would keep readers out.
        flock(file, FlockOperation::NonBlockingLockShared)?;
        Ok(LockOutcome::Acquired)
    }

    fn unlock(&self, file: &File) {
        let _ = flock(file, FlockOperation::Unlock);
        let nothing = lock_of(LockType::Unlocked, 0..0);
        let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&nothing));
    }
}

/// Returns the path of an open file in `/proc`: proc(5).
fn proc_fd_path(file: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

fn real_path(link: &Path) -> Result<PathBuf, Errno> {
    let path = readlink(link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}
