//! A byte ring between two processes in shared memory.

use core::slice;

#[cfg(not(all(loom, test)))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rustix::io::Errno;

#[cfg(all(loom, test))]
use super::modelled_memory::SharedMemory;
#[cfg(not(all(loom, test)))]
use super::shared_memory::SharedMemory;

/// A ring in memory that is shared across fork. One process turns it into its
/// [`Producer`], the other one into its [`Consumer`].
///
/// ```text
///  offset   freed           taken              written
///    | to be | still lent to  | to be consumed   | the producer's
///    | used  | the consumer   |                  | room
/// ```
pub(crate) struct SharedRing(SharedMemory);

/// The writing end.
pub(crate) struct Producer {
    ring: SharedRing,
    written: u64,
}

/// The reading end.
pub(crate) struct Consumer {
    ring: SharedRing,
    taken: u64,
}

/// The header before the bytes. Each field has one writer.
#[derive(Default)]
#[repr(C)]
pub(super) struct Header {
    /// By the producer: how many bytes it has written in total.
    written: AtomicU64,
    /// By the producer: a value whose meaning the two ends define.
    word: AtomicU32,
    /// By the producer: an offset whose meaning the two ends define.
    mark: AtomicU64,
    /// By the consumer: the offset up to which the producer may overwrite.
    freed: AtomicU64,
    /// By the consumer: it sleeps until this offset is written. 0: it is awake.
    wanted: AtomicU64,
}

/// The number of bytes before the next one to be consumed that are never
/// overwritten: a frame's header is stored there while it is sent.
const HEADROOM: usize = 8;

impl SharedRing {
    /// `capacity` is a multiple of the page size.
    pub(crate) fn new(capacity: usize) -> Result<Self, Errno> {
        SharedMemory::new(capacity).map(Self)
    }

    /// Returns the ring as both processes have it after a fork.
    #[cfg(all(loom, test))]
    pub(crate) fn in_both_processes(capacity: usize) -> [Self; 2] {
        let memory = SharedMemory::new(capacity).expect("there is memory");
        [Self(memory.clone()), Self(memory)]
    }

    pub(crate) fn into_producer(self) -> Producer {
        Producer {
            ring: self,
            written: 0,
        }
    }

    pub(crate) fn into_consumer(self) -> Consumer {
        Consumer {
            ring: self,
            taken: 0,
        }
    }

    /// Frees the memory of the bytes. Neither end may still use any.
    fn shrink(&mut self) {
        self.0.shrink();
    }

    fn header(&self) -> &Header {
        self.0.header()
    }

    fn capacity(&self) -> u64 {
        self.0.capacity() as u64
    }
}

impl Producer {
    /// See [`SharedRing::shrink`].
    pub(crate) fn shrink(&mut self) {
        self.ring.shrink();
    }

    /// Resets the ring. The other end must not use it meanwhile.
    pub(crate) fn reset(&mut self) {
        self.written = 0;
        let header = self.ring.header();
        header.written.store(0, Ordering::Relaxed);
        header.freed.store(0, Ordering::Relaxed);
    }

    /// Resets this end after the other end has reset the ring.
    pub(crate) fn was_reset(&mut self) {
        self.written = 0;
    }

    /// Returns whether `count` bytes can be written, though perhaps not
    /// contiguously.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        let capacity = self.ring.capacity();
        // The consumer never frees the headroom.
        let most = capacity.saturating_sub(HEADROOM as u64);
        self.used().saturating_add(most.min(count as u64)) <= capacity
    }

    /// Returns how many bytes of the ring are in use.
    pub(crate) fn used(&self) -> u64 {
        self.written.saturating_sub(self.freed())
    }

    /// Returns the contiguous memory to write to. Empty if there is no room.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let room = self.ring.capacity().saturating_sub(self.used()) as usize;
        let (start, piece) = self.ring.0.place(self.written);
        let count = piece.min(room);
        self.ring.0.writes(self.written, count);
        // SAFETY: these bytes are within the mapping and initialised, and not
        // used otherwise: the consumer stays below `written`, and `&mut self`
        // makes this the only producer.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), count) }
    }

    /// Publishes `count` bytes that were written to the room.
    pub(crate) fn wrote(&mut self, count: usize) {
        self.ring.0.writes(self.written, count);
        self.written = self.written.saturating_add(count as u64);
        let header = self.ring.header();
        header.written.store(self.written, Ordering::Release);
    }

    /// Returns how many bytes were written in total.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Returns how many of them the other end has freed.
    pub(crate) fn freed(&self) -> u64 {
        self.ring.header().freed.load(Ordering::Acquire)
    }

    /// Sets the mark to the current offset.
    pub(crate) fn set_mark(&mut self) {
        let header = self.ring.header();
        header.mark.store(self.written, Ordering::Relaxed);
    }

    /// Publishes a word, after everything that was written.
    pub(crate) fn set_word(&mut self, word: u32) {
        self.ring.header().word.store(word, Ordering::SeqCst);
    }

    /// Returns whether the other end sleeps until what has happened: bytes, or
    /// `anything` else. The caller must then wake it.
    pub(crate) fn is_awaited(&self, anything: bool) -> bool {
        // Either an end that is just going to sleep sees the change, or its
        // request is seen here.
        fence(Ordering::SeqCst);
        match self.ring.header().wanted.load(Ordering::SeqCst) {
            0 => false,
            wanted => anything || self.written >= wanted,
        }
    }
}

impl Consumer {
    /// See [`SharedRing::shrink`].
    pub(crate) fn shrink(&mut self) {
        self.ring.shrink();
    }

    /// Resets the ring. The other end must not use it meanwhile.
    pub(crate) fn reset(&mut self) {
        self.taken = 0;
        let header = self.ring.header();
        header.written.store(0, Ordering::Relaxed);
        header.freed.store(0, Ordering::Relaxed);
        header.mark.store(u64::MAX, Ordering::Relaxed);
    }

    /// Resets this end after the other end has reset the ring.
    pub(crate) fn was_reset(&mut self) {
        self.taken = 0;
    }

    /// Returns the offset after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.ring.header().written.load(Ordering::Acquire)
    }

    /// Returns how many bytes were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the contiguous bytes from `offset` on that were not taken.
    pub(crate) fn bytes_from(&self, offset: u64) -> &[u8] {
        let offset = offset.max(self.taken);
        let count = self.end().saturating_sub(offset) as usize;
        let (start, piece) = self.ring.0.place(offset);
        let count = piece.min(count);
        self.ring.0.reads(offset, count);
        // SAFETY: these bytes are within the mapping and written, and the
        // producer does not touch them before they are taken, which needs
        // `&mut self`.
        unsafe { slice::from_raw_parts(start.as_ptr(), count) }
    }

    /// Calls `with` on the contiguous bytes from `offset` on, preceded by
    /// `prefix`, which overwrites bytes that were taken. Returns `None` if
    /// there is no space for it.
    pub(crate) fn with_prefix<T>(
        &mut self,
        offset: u64,
        prefix: &[u8; HEADROOM],
        with: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let offset = offset.max(self.taken);
        let before = offset.checked_sub(HEADROOM as u64)?;
        let (start, piece) = self.ring.0.place(before);
        let count = self.bytes_from(offset).len();
        if piece <= HEADROOM || before < self.ring.header().freed.load(Ordering::Relaxed) {
            return None;
        }
        self.ring.0.writes(before, HEADROOM);
        // SAFETY: `piece` shows that both are within the mapping and
        // contiguous. Those of the prefix are not freed, as checked above, so
        // they are ours like the others, and `&mut self` is exclusive.
        let lent = unsafe {
            slice::from_raw_parts_mut(start.as_ptr(), piece.min(count.saturating_add(HEADROOM)))
        };
        *lent.first_chunk_mut()? = *prefix;
        Some(with(lent))
    }

    /// Frees everything before `offset`, but for the [`HEADROOM`].
    pub(crate) fn take_until(&mut self, offset: u64) {
        let taken = self.taken.max(offset.min(self.end()));
        self.ring
            .0
            .reads(self.taken, taken.saturating_sub(self.taken) as usize);
        self.taken = taken;
        let freed = self.taken.saturating_sub(HEADROOM as u64);
        self.ring.header().freed.store(freed, Ordering::Release);
    }

    /// Returns the producer's mark; `u64::MAX` if there is none. Valid only
    /// after reading its word or the end.
    pub(crate) fn mark(&self) -> u64 {
        self.ring.header().mark.load(Ordering::Relaxed)
    }

    pub(crate) fn word(&self) -> u32 {
        self.ring.header().word.load(Ordering::SeqCst)
    }

    /// Announces that this end sleeps until `written` is reached or something
    /// else happens.
    pub(crate) fn sleep_until(&self, written: u64) {
        let wanted = written.max(1);
        self.ring.header().wanted.store(wanted, Ordering::SeqCst);
        // What this end looks at next, it looks at after that: see `is_awaited`.
        fence(Ordering::SeqCst);
    }

    /// Announces that this end is awake.
    pub(crate) fn wake_up(&self) {
        self.ring.header().wanted.store(0, Ordering::SeqCst);
    }
}
