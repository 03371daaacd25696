use core::{ffi::c_void, ptr::NonNull};

use rustix::{
    io::Errno,
    mm::{Advice, MapFlags, madvise, munmap},
};

use super::{mapping::map_zeroes, shared::Header};

/// The memory of a [`SharedRing`](super::SharedRing), which is shared across fork: a header,
/// and bytes that are used in a circle.
pub(super) struct SharedMemory {
    start: NonNull<u8>,
    capacity: usize,
}

/// The header has a page of its own, so that the bytes begin on one.
const PAGE: usize = 4096;

impl SharedMemory {
    /// `capacity` is a multiple of the page size.
    pub(super) fn new(capacity: usize) -> Result<Self, Errno> {
        let length = capacity.checked_add(PAGE).ok_or(Errno::NOMEM)?;
        let start = map_zeroes(length, MapFlags::SHARED)?;
        Ok(Self { start, capacity })
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Frees the memory of the bytes. Neither end may still use any.
    pub(super) fn shrink(&mut self) {
        let (start, _) = self.place(0);
        let start: *mut c_void = start.as_ptr().cast();
        // SAFETY: it is exactly the mapping's bytes, none of which is lent;
        // they read as zeroes afterwards. An error changes nothing.
        let _ = unsafe { madvise(start, self.capacity, Advice::LinuxRemove) };
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a page for it, which is aligned, and
        // zeroes are a valid header. Its fields are atomic, so the other
        // process may change them.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    /// Returns the address of `offset`, and how many contiguous bytes follow.
    pub(super) fn place(&self, offset: u64) -> (NonNull<u8>, usize) {
        let capacity = self.capacity as u64;
        let position = offset.checked_rem(capacity).unwrap_or(0) as usize;
        // SAFETY: it is within the mapping: a page and `capacity` bytes.
        let start = unsafe { self.start.add(PAGE).add(position) };
        (start, self.capacity.saturating_sub(position))
    }

    /// Called when bytes are lent to be read, and when they are given back. Only the model
    /// checks that nobody writes to them meanwhile.
    pub(super) fn reads(&self, _offset: u64, _count: usize) {}

    /// Same, when bytes are lent to be written.
    pub(super) fn writes(&self, _offset: u64, _count: usize) {}
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let start: *mut c_void = self.start.as_ptr().cast();
        // SAFETY: it is exactly what was mapped, and no slice outlives `self`.
        // It cannot fail for a valid mapping.
        let _ = unsafe { munmap(start, self.capacity.saturating_add(PAGE)) };
    }
}
