//! The memory of a ring in a model: loom checks every use of each byte.

use core::{cell::UnsafeCell, ptr::NonNull};

use alloc::{boxed::Box, vec::Vec};
use loom::{cell::Cell, sync::Arc};
use rustix::io::Errno;

use super::shared::Header;

/// Stands for [`SharedMemory`](super::shared_memory::SharedMemory). Clones are the same
/// memory, as after a fork.
#[derive(Clone)]
pub(super) struct SharedMemory(Arc<Inner>);

struct Inner {
    header: Header,
    bytes: Box<[UnsafeCell<u8>]>,
    /// One for each byte: it is read and written when the byte may be.
    uses: Vec<Cell<()>>,
}

// SAFETY: the bytes are used as the ring lends them. That this is right is what the model
// checks, with `uses`.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl SharedMemory {
    pub(super) fn new(capacity: usize) -> Result<Self, Errno> {
        Ok(Self(Arc::new(Inner {
            header: Header::default(),
            bytes: (0..capacity).map(|_| UnsafeCell::new(0)).collect(),
            uses: (0..capacity).map(|_| Cell::new(())).collect(),
        })))
    }

    pub(super) fn capacity(&self) -> usize {
        self.0.bytes.len()
    }

    pub(super) fn shrink(&mut self) {}

    pub(super) fn header(&self) -> &Header {
        &self.0.header
    }

    pub(super) fn place(&self, offset: u64) -> (NonNull<u8>, usize) {
        let position = self.position(offset);
        let rest = self.0.bytes.get(position..).unwrap_or_default();
        let start = NonNull::from(rest).cast::<u8>();
        (start, rest.len())
    }

    /// Fails if another process may write to one of these bytes.
    pub(super) fn reads(&self, offset: u64, count: usize) {
        for place in 0..count as u64 {
            self.0.uses[self.position(offset + place)].get();
        }
    }

    /// Fails if another process may read one of these bytes or write to it.
    pub(super) fn writes(&self, offset: u64, count: usize) {
        for place in 0..count as u64 {
            self.0.uses[self.position(offset + place)].set(());
        }
    }

    fn position(&self, offset: u64) -> usize {
        offset.checked_rem(self.capacity() as u64).unwrap_or(0) as usize
    }
}
