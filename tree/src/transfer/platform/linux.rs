use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::{
    fs::{
        Access, AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, Stat, XattrFlags, access,
        fgetxattr, flistxattr, fsetxattr, fstat, linkat, openat, openat2, renameat_with,
    },
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use super::{FoundEntry, Platform};
use crate::transfer::receive::atomic_file::create_or_replace;

/// The calls of Linux.
pub(super) struct Linux;

impl Platform for Linux {
    fn has_unnamed_files(&self) -> bool {
        // A file without a name gets one through its link in there: open(2).
        access("/proc/self/fd", Access::EXISTS).is_ok()
    }

    fn create_unnamed(&self, directory: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        openat(directory, ".", flags, mode)
    }

    fn link_unnamed(
        &self,
        file: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(CWD, &path, directory, name, AtFlags::SYMLINK_FOLLOW)
    }

    fn rename_noreplace(
        &self,
        directory: BorrowedFd<'_>,
        from: &[u8],
        to: &[u8],
    ) -> Result<(), Errno> {
        renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)
    }

    fn open_search(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(directory, name, flags, Mode::empty())
    }

    fn find(&self, top: BorrowedFd<'_>, path: &[u8]) -> Result<Box<dyn FoundEntry>, Errno> {
        let file = openat2(
            top,
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        let stat = fstat(&file)?;
        Ok(Box::new(OpenEntry { file, stat }))
    }

    fn fill_random(&self, buffer: &mut [u8]) -> Result<(), Errno> {
        getrandom(buffer, GetRandomFlags::empty()).map(drop)
    }

    fn list_xattrs(&self, file: BorrowedFd<'_>, names: &mut [u8]) -> Result<usize, Errno> {
        flistxattr(file, names)
    }

    fn get_xattr(
        &self,
        file: BorrowedFd<'_>,
        name: &[u8],
        value: &mut [u8],
    ) -> Result<Option<usize>, Errno> {
        match fgetxattr(file, name, value) {
            Err(Errno::NODATA) => Ok(None),
            read => read.map(Some),
        }
    }

    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        fsetxattr(file, name, value, XattrFlags::empty())
    }
}

/// An entry that stays the same, whatever happens to its name.
struct OpenEntry {
    file: OwnedFd,
    stat: Stat,
}

impl FoundEntry for OpenEntry {
    fn stat(&self) -> &Stat {
        &self.stat
    }

    fn link(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        create_or_replace(directory, name, |name| {
            Linux.link_unnamed(self.file.as_fd(), directory, name)
        })
    }
}
