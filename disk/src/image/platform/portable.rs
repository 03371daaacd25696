use std::{
    fs::File,
    io,
    os::{
        fd::AsFd as _,
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Component, Path, PathBuf},
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use rustix::{
    fs::{
        AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, fcntl_getfl, fcntl_setfl, flock,
        fstat, openat, statat,
    },
    io::Errno,
};
use vmcell_tree::transfer::open_search;

use super::{LockType, Platform, conflicting};
use crate::image::{error::ImageError, lock::LockOutcome, source::Source};

/// The calls of POSIX, and flock(2).
pub(super) struct Portable;

impl Platform for Portable {
    fn open(
        &self,
        path: &Path,
        is_allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<(File, PathBuf), ImageError> {
        let real = path.canonicalize().map_err(ImageError::read(path))?;
        if !is_allowed(&real) {
            return Err(ImageError::BackingNotAllowed { path: real });
        }
        match open_regular(&real, OFlags::RDONLY).map_err(ImageError::read(path))? {
            Some(file) => Ok((file, real)),
            None => Err(ImageError::NotAFile { path: real }),
        }
    }

    fn reopen_for_writing(&self, source: &Source) -> io::Result<File> {
        if let Some(file) = open_regular(&source.path, OFlags::RDWR)? {
            let metadata = file.metadata()?;
            if (metadata.dev(), metadata.ino()) == (source.id.device, source.id.inode) {
                return Ok(file);
            }
        }
        let reason = "another file has its name now";
        Err(io::Error::new(io::ErrorKind::NotFound, reason))
    }

    /// Takes a lock of the whole file only, because these systems have no locks
    /// of single bytes that belong to an open file description. Where locks of
    /// both kinds conflict, as on BSD and macOS, QEMU respects it too.
    fn lock(
        &self,
        file: &File,
        whole: FlockOperation,
        _ours: &[i64],
        opposite: &[i64],
    ) -> io::Result<LockOutcome> {
        for wanted in conflicting(opposite) {
            let mut found = wanted;
            fcntl(file, FcntlArg::F_GETLK(&mut found))?;
            if !LockType::Unlocked.is_type_of(&found) && !is_shared_flock(&found) {
                return Ok(LockOutcome::InUse);
            }
        }
        match flock(file, whole) {
            Ok(()) => Ok(LockOutcome::Acquired),
            Err(Errno::WOULDBLOCK) => Ok(LockOutcome::InUse),
            Err(errno) => Err(errno.into()),
        }
    }

    fn unlock(&self, file: &File) {
        let _ = flock(file, FlockOperation::Unlock);
    }
}

/// Returns whether this is a shared lock of flock(2), which some systems report
/// in fcntl(2) too: of the whole file, and without a process. It conflicts only
/// with another one of flock(2).
fn is_shared_flock(lock: &libc::flock) -> bool {
    LockType::Read.is_type_of(lock) && (lock.l_start, lock.l_len, lock.l_pid) == (0, 0, -1)
}

/// Opens a regular file by its real path. Follows no symlink, so if one has
/// just replaced a component of the path, this fails. Returns `None` if it is
/// not a regular file.
fn open_regular(path: &Path, access: OFlags) -> Result<Option<File>, Errno> {
    let mut directory = open_search(CWD, b"/")?;
    let mut names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.as_bytes()),
        _ => None,
    });
    let Some(last) = names.next_back() else {
        return Ok(None);
    };
    for name in names {
        directory = open_search(directory.as_fd(), name)?;
    }
    // Opening a device or a pipe can have side effects, so look first. If one
    // has just replaced the file, opening it does not block.
    let stat = statat(&directory, last, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(&directory, last, access | flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(File::from(file)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::{super::lock_of, *};

    #[test]
    fn a_path_that_has_become_a_symlink_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("d")).unwrap();
        fs::write(top.join("d/disk"), "x").unwrap();
        symlink(top.join("d"), top.join("link")).unwrap();
        symlink(top.join("d/disk"), top.join("d/link")).unwrap();
        let open = |path: &str| open_regular(&top.join(path), OFlags::RDONLY);
        assert!(open("d/disk").unwrap().is_some());
        assert!(open("link/disk").is_err());
        assert!(open("d/link").unwrap().is_none());
        assert!(open("d").unwrap().is_none());
        assert!(
            open_regular(Path::new("/"), OFlags::RDONLY)
                .unwrap()
                .is_none()
        );
        assert!(
            open_regular(Path::new("/dev/null"), OFlags::RDWR)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn another_file_with_the_same_name_is_not_opened_for_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        fs::write(&path, "x").unwrap();
        let source = Source::open(&path, true).unwrap();
        assert!(Portable.reopen_for_writing(&source).is_ok());
        fs::rename(&path, folder.path().join("old")).unwrap();
        assert!(Portable.reopen_for_writing(&source).is_err());
        fs::write(&path, "y").unwrap();
        let error = Portable.reopen_for_writing(&source).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_shared_locks_of_flock_are_left_to_flock() {
        let lock = |kind, bytes, pid| libc::flock {
            l_pid: pid,
            ..lock_of(kind, bytes)
        };
        assert!(is_shared_flock(&lock(LockType::Read, 0..0, -1)));
        assert!(!is_shared_flock(&lock(LockType::Read, 0..0, 7)));
        assert!(!is_shared_flock(&lock(LockType::Write, 0..0, -1)));
        assert!(!is_shared_flock(&lock(LockType::Read, 100..101, -1)));
    }
}
