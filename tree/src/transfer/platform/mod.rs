//! What depends on the operating system: Linux has calls of its own for it,
//! other Unix systems do the same with the calls of POSIX.
//!
//! Both ways are equally safe. Tests run on Linux with both of them.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod portable;
#[cfg(test)]
mod tests;

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::{
    fs::{Dev, Mode, Stat},
    io::Errno,
};

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux::Linux as Native;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use portable::Portable as Native;

/// The operations that depend on the operating system. None of them follows a
/// symbolic link below the directories that it gets.
pub(super) trait Platform: Sync {
    /// Returns whether files can be created without a name.
    fn has_unnamed_files(&self) -> bool;

    /// Creates a file without a name, open for reading and writing, in the file
    /// system of a directory.
    ///
    /// # Errors
    /// `EOPNOTSUPP`, `EISDIR` or `EINVAL` if that is not supported.
    fn create_unnamed(&self, directory: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno>;

    /// Gives a file without a name one.
    ///
    /// # Errors
    /// `EEXIST` if the name is taken.
    fn link_unnamed(
        &self,
        file: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<(), Errno>;

    /// Renames a file in a directory.
    ///
    /// # Errors
    /// `EEXIST` if the new name is taken.
    fn rename_noreplace(
        &self,
        directory: BorrowedFd<'_>,
        from: &[u8],
        to: &[u8],
    ) -> Result<(), Errno>;

    /// Opens a directory in which names will be looked up or created. It need
    /// not be readable, where the system supports that.
    fn open_search(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno>;

    /// Finds an entry below a directory.
    fn find(&self, top: BorrowedFd<'_>, path: &[u8]) -> Result<Box<dyn FoundEntry>, Errno>;

    /// Fills a buffer with bytes that nobody can guess.
    fn fill_random(&self, buffer: &mut [u8]) -> Result<(), Errno>;

    /// Reads the names of all extended attributes, each with a zero after it.
    /// Returns their length.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the file system has no attributes.
    fn list_xattrs(&self, file: BorrowedFd<'_>, names: &mut [u8]) -> Result<usize, Errno>;

    /// Reads an extended attribute. Returns its length, or `None` if there is
    /// none with this name.
    fn get_xattr(
        &self,
        file: BorrowedFd<'_>,
        name: &[u8],
        value: &mut [u8],
    ) -> Result<Option<usize>, Errno>;

    /// Sets an extended attribute.
    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno>;
}

/// An entry that [`Platform::find`] has found.
pub(super) trait FoundEntry {
    /// Returns its metadata.
    fn stat(&self) -> &Stat;

    /// Gives the entry another name. Replaces a file or link with that name.
    ///
    /// # Errors
    /// `ENOENT` if another entry has replaced it meanwhile.
    fn link(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno>;
}

/// Returns the operations of this operating system.
pub(super) fn platform() -> &'static dyn Platform {
    #[cfg(test)]
    if tests::is_portable() {
        return &portable::Portable;
    }
    &Native
}

/// Opens a directory in which names will be looked up, without following a
/// symbolic link. It need not be readable, where the system supports that.
///
/// # Errors
/// The error of open(2).
pub fn open_search(directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    platform().open_search(directory, name)
}

/// The device and the inode of a file, which identify it.
pub(super) type FileId = (Dev, u64);

pub(super) fn file_id(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// Returns whether open(2) with `O_NOFOLLOW` found a symbolic link. FreeBSD has
/// another error for it than POSIX.
pub(super) fn is_symlink_error(errno: Errno) -> bool {
    matches!(errno, Errno::LOOP | Errno::MLINK)
}
