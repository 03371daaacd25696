use core::{ffi::c_void, ptr::NonNull, slice};

use rustix::{
    io::Errno,
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap},
};

/// Private zeroed memory from mmap(2): untouched pages cost nothing, and
/// dropping it frees all of it at once. It is not copied into forks of the
/// agent, where it would keep pages alive that the agent overwrites.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

/// Maps new memory of this length, which can be read and written.
pub(super) fn map_zeroes(length: usize, flags: MapFlags) -> Result<NonNull<u8>, Errno> {
    let anywhere = core::ptr::null_mut();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let start = unsafe { mmap_anonymous(anywhere, length, access, flags) }?;
    NonNull::new(start.cast()).ok_or(Errno::NOMEM)
}

impl Mapping {
    pub(crate) fn new(length: usize) -> Result<Self, Errno> {
        let start = map_zeroes(length, MapFlags::PRIVATE)?;
        // SAFETY: it is what was mapped, and a fork uses none of it. Without
        // the advice forks only become larger.
        let _ = unsafe { madvise(start.as_ptr().cast(), length, Advice::LinuxDontFork) };
        Ok(Self { start, length })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, initialised (zeroed) and ours.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and writable; `&mut self` makes it exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start: *mut c_void = self.start.as_ptr().cast();
        // SAFETY: it is exactly what was mapped, and no slice outlives `self`.
        // It cannot fail for a valid mapping.
        let _ = unsafe { munmap(start, self.length) };
    }
}
