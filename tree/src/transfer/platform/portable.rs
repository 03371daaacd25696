use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, Stat, linkat, openat, renameat, statat, unlinkat},
    io::{Errno, read, retry_on_intr},
};
use xattr::FileExt;

use super::{FoundEntry, Platform, file_id};
use crate::transfer::receive::atomic_file::random_name;

/// The calls of POSIX.
pub(super) struct Portable;

/// Opens a directory to look up names in it, even if it may not be read.
/// POSIX names it `O_SEARCH`, but not every system has it.
const SEARCH: OFlags = {
    #[cfg(target_os = "freebsd")]
    let flags = OFlags::PATH;
    #[cfg(target_vendor = "apple")]
    let flags = OFlags::from_bits_retain(libc::O_SEARCH.cast_unsigned());
    #[cfg(not(any(target_os = "freebsd", target_vendor = "apple")))]
    let flags = OFlags::RDONLY;
    flags
};

impl Platform for Portable {
    fn has_unnamed_files(&self) -> bool {
        false
    }

    fn create_unnamed(&self, _: BorrowedFd<'_>, _: Mode) -> Result<OwnedFd, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn link_unnamed(&self, _: BorrowedFd<'_>, _: BorrowedFd<'_>, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn rename_noreplace(
        &self,
        directory: BorrowedFd<'_>,
        from: &[u8],
        to: &[u8],
    ) -> Result<(), Errno> {
        // rename(2) would replace, and link(2) never does.
        linkat(directory, from, directory, to, AtFlags::empty())?;
        // The file is complete under its name. What a failure leaves is a
        // second name, like a program that is killed here.
        let _ = unlinkat(directory, from, AtFlags::empty());
        Ok(())
    }

    fn open_search(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = SEARCH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(directory, name, flags, Mode::empty())
    }

    fn find(&self, top: BorrowedFd<'_>, path: &[u8]) -> Result<Box<dyn FoundEntry>, Errno> {
        let mut directory = top.try_clone_to_owned().map_err(to_errno)?;
        let mut names = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            if matches!(name, b"" | b"." | b"..") {
                return Err(Errno::INVAL);
            }
            if names.peek().is_some() {
                directory = self.open_search(directory.as_fd(), name)?;
                continue;
            }
            let stat = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            return Ok(Box::new(NamedEntry {
                directory,
                name: name.to_vec(),
                stat,
            }));
        }
        Err(Errno::NOENT)
    }

    fn fill_random(&self, mut buffer: &mut [u8]) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let source = openat(CWD, "/dev/urandom", flags, Mode::empty())?;
        while !buffer.is_empty() {
            let count = retry_on_intr(|| read(&source, &mut *buffer))?;
            if count == 0 {
                return Err(Errno::IO);
            }
            buffer = buffer.get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }

    fn list_xattrs(&self, file: BorrowedFd<'_>, names: &mut [u8]) -> Result<usize, Errno> {
        let mut length = 0;
        for name in Descriptor(file).list_xattr().map_err(xattr_errno)? {
            let bytes = name.as_bytes();
            let place = names.get_mut(length..=length + bytes.len());
            let Some((zero, place)) = place.and_then(<[u8]>::split_last_mut) else {
                return Err(Errno::RANGE);
            };
            place.copy_from_slice(bytes);
            *zero = 0;
            length += bytes.len() + 1;
        }
        Ok(length)
    }

    fn get_xattr(
        &self,
        file: BorrowedFd<'_>,
        name: &[u8],
        value: &mut [u8],
    ) -> Result<Option<usize>, Errno> {
        let found = Descriptor(file).get_xattr(OsStr::from_bytes(name));
        let Some(found) = found.map_err(xattr_errno)? else {
            return Ok(None);
        };
        let place = value.get_mut(..found.len()).ok_or(Errno::RANGE)?;
        place.copy_from_slice(&found);
        Ok(Some(found.len()))
    }

    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        let set = Descriptor(file).set_xattr(OsStr::from_bytes(name), value);
        set.map_err(xattr_errno)
    }
}

/// An entry by its name, because an open file cannot be linked.
struct NamedEntry {
    directory: OwnedFd,
    name: Vec<u8>,
    stat: Stat,
}

impl FoundEntry for NamedEntry {
    fn stat(&self) -> &Stat {
        &self.stat
    }

    fn link(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        // Something else may have got its name meanwhile. So the link gets a
        // name that nobody guesses until it is known what it leads to.
        let temp_name = random_name()?;
        linkat(
            &self.directory,
            &self.name,
            directory,
            &temp_name,
            AtFlags::empty(),
        )?;
        let renamed = statat(directory, &temp_name, AtFlags::SYMLINK_NOFOLLOW).and_then(|linked| {
            if file_id(&linked) != file_id(&self.stat) {
                return Err(Errno::NOENT);
            }
            renameat(directory, &temp_name, directory, name)
        });
        // It still exists if this failed, and also if both are names of the
        // same file: then rename(2) does nothing.
        let _ = unlinkat(directory, &temp_name, AtFlags::empty());
        renamed
    }
}

/// An open file, as the crate `xattr` takes it.
struct Descriptor<'a>(BorrowedFd<'a>);

impl AsRawFd for Descriptor<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl FileExt for Descriptor<'_> {}

fn to_errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn xattr_errno(error: io::Error) -> Errno {
    match to_errno(error) {
        // Some systems have two errors with this meaning.
        Errno::NOTSUP => Errno::OPNOTSUPP,
        errno => errno,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use rustix::fs::open;

    use super::*;

    #[test]
    fn an_entry_is_linked_only_if_its_name_is_still_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let top = open(folder.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        fs::create_dir(path("d")).unwrap();
        fs::write(path("d/a"), "x").unwrap();
        fs::write(path("b"), "old").unwrap();
        symlink("d", path("link")).unwrap();

        let found = Portable.find(top.as_fd(), b"d/a").unwrap();
        found.link(top.as_fd(), b"b").unwrap();
        assert_eq!(fs::read(path("b")).unwrap(), b"x");
        fs::write(path("secret"), "secret").unwrap();
        fs::rename(path("secret"), path("d/a")).unwrap();
        assert_eq!(found.link(top.as_fd(), b"b"), Err(Errno::NOENT));
        assert_eq!(fs::read(path("b")).unwrap(), b"x");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);

        for outside in ["link/a", "d/../b", "/etc/passwd", "../x", "d//a", "."] {
            let found = Portable.find(top.as_fd(), outside.as_bytes());
            assert!(found.is_err(), "{outside}");
        }
    }
}
