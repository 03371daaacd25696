//! Cgroups below a child's cgroup.

use core::{ffi::CStr, mem::MaybeUninit};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, unlinkat},
    io::Errno,
};

/// How deep cgroups may be below that of a child; the kernel enforces it.
pub(super) const MAX_DEPTH: u32 = 32;

/// How many cgroups may be below that of a child; the kernel enforces it.
pub(super) const MAX_DESCENDANTS: u32 = 1024;

/// The size of the buffer for names; a larger directory is read in parts.
const BUFFER: usize = 2048;

/// Removes a cgroup with all below it. It visits at most `budget` cgroups.
///
/// # Errors
/// `EBUSY` if processes are left in it, `EAGAIN` if there is more to do.
pub(super) fn remove(parent: &OwnedFd, name: &CStr, budget: &mut u32) -> Result<(), Errno> {
    remove_below(parent, name, MAX_DEPTH, budget)
}

fn remove_below(parent: &OwnedFd, name: &CStr, depth: u32, budget: &mut u32) -> Result<(), Errno> {
    *budget = budget.checked_sub(1).ok_or(Errno::AGAIN)?;
    let removed = || match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        outcome => outcome,
    };
    let depth = match (removed(), depth.checked_sub(1)) {
        (Err(Errno::BUSY), Some(depth)) => depth,
        (outcome, _) => return outcome,
    };
    let directory = open_directory(parent, name)?;
    for_each_below(&directory, |name| {
        remove_below(&directory, name, depth, budget)
    })?;
    removed()
}

/// Calls `visit` with the name of each cgroup directly below one.
pub(super) fn for_each_below(
    directory: &OwnedFd,
    mut visit: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == FileType::Directory && !matches!(name.to_bytes(), b"." | b"..") {
            visit(name)?;
        }
    }
    Ok(())
}

pub(super) fn open_directory(at: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}
