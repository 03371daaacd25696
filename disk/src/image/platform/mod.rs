//! What depends on the operating system: how image files are opened and locked.
//! Tests run on Linux with both ways.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod portable;
#[cfg(test)]
pub(super) mod tests;

use std::{
    fs::File,
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use nix::libc;
use rustix::fs::FlockOperation;

use super::{error::ImageError, lock::LockOutcome, source::Source};

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux::Linux as Native;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use portable::Portable as Native;

/// The operations that depend on the operating system.
pub(super) trait Platform: Sync {
    /// Opens a file for reading and returns it with its real path, with all
    /// symlinks resolved. Opens nothing but a regular file whose real path is
    /// allowed, even if another process renames files meanwhile.
    fn open(
        &self,
        path: &Path,
        is_allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<(File, PathBuf), ImageError>;

    /// Opens the same file for reading and writing.
    fn reopen_for_writing(&self, source: &Source) -> io::Result<File>;

    /// Locks the whole file and the bytes `ours`, unless another process has
    /// locked one of the bytes `opposite` or the whole file. The locks belong to
    /// the open file description.
    fn lock(
        &self,
        file: &File,
        whole: FlockOperation,
        ours: &[i64],
        opposite: &[i64],
    ) -> io::Result<LockOutcome>;

    /// Releases all locks of the open file description.
    fn unlock(&self, file: &File);
}

/// Returns the operations of this operating system.
pub(super) fn platform() -> &'static dyn Platform {
    #[cfg(test)]
    if tests::is_portable() {
        return &portable::Portable;
    }
    &Native
}

/// The type of a lock: `F_RDLCK`, `F_WRLCK` or `F_UNLCK`. Systems differ in the
/// type of these constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockType {
    Read,
    Write,
    Unlocked,
}

impl LockType {
    const fn raw(self) -> libc::c_short {
        let raw = match self {
            Self::Read => libc::F_RDLCK,
            Self::Write => libc::F_WRLCK,
            Self::Unlocked => libc::F_UNLCK,
        };
        raw as libc::c_short
    }

    fn is_type_of(self, lock: &libc::flock) -> bool {
        lock.l_type == self.raw()
    }
}

/// Returns locks that could not be taken if another process has locked one of
/// these bytes, or the whole file for writing.
fn conflicting(opposite: &[i64]) -> impl Iterator<Item = libc::flock> {
    let bytes = opposite.iter();
    let bytes = bytes.map(|byte| lock_of(LockType::Write, *byte..byte + 1));
    bytes.chain([lock_of(LockType::Read, 0..0)])
}

/// Returns a lock of these bytes. An empty range at 0 means the whole file:
/// fcntl(2).
fn lock_of(kind: LockType, bytes: Range<i64>) -> libc::flock {
    libc::flock {
        l_type: kind.raw(),
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start,
        l_len: bytes.end - bytes.start,
        l_pid: 0,
        #[cfg(target_os = "freebsd")]
        l_sysid: 0,
    }
}
