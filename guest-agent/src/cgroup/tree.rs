//! Cgroups below others.

use core::{ffi::CStr, mem::MaybeUninit};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, unlinkat},
    io::Errno,
};

/// How deep cgroups may be below one of a child, which the kernel is told to
/// enforce.
pub(super) const MAX_DEPTH: u32 = 32;

/// How many cgroups a child may have below its own, which the kernel is told to
/// enforce.
pub(super) const MAX_DESCENDANTS: u32 = 1024;

/// Names of a page; a larger directory is read in parts.
const BUFFER: usize = 2048;

/// Removes a cgroup with all below it, as far as `steps` go: each one is a
/// cgroup that is looked at.
///
/// # Errors
/// `EBUSY` if processes are left in it, `EAGAIN` if there is more to do.
pub(super) fn remove(parent: &OwnedFd, name: &CStr, steps: &mut u32) -> Result<(), Errno> {
    remove_below(parent, name, MAX_DEPTH, steps)
}

fn remove_below(parent: &OwnedFd, name: &CStr, depth: u32, steps: &mut u32) -> Result<(), Errno> {
    *steps = steps.checked_sub(1).ok_or(Errno::AGAIN)?;
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
        remove_below(&directory, name, depth, steps)
    })?;
    removed()
}

/// Calls `visit` with each cgroup directly below one.
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
