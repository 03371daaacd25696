use std::{
    fmt, io,
    sync::{Mutex, PoisonError},
};

/// The number of a layer in the chain, and an offset in its file.
pub(super) type Key = (usize, u64);

/// One slot of the cache, with the key of its value.
type Slot<T> = Mutex<Option<(Key, T)>>;

/// A direct-mapped cache of chunks of files: each key has one slot, and a new
/// chunk replaces the old one in its slot.
pub(super) struct DirectMappedCache<T> {
    slots: Box<[Slot<T>]>,
    /// Log2 of the approximate distance between chunks.
    step_bits: u32,
}

impl<T> DirectMappedCache<T> {
    /// Creates a cache of `count` slots, a power of two.
    pub(super) fn new(count: usize, step_bits: u32) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            step_bits,
        }
    }

    /// Calls `act` with the chunk for `key`, and `load` first if the chunk is
    /// not cached. `act` should be short, since it runs under the slot's lock.
    pub(super) fn with<R>(
        &self,
        key: Key,
        load: impl FnOnce() -> io::Result<T>,
        act: impl FnOnce(&T) -> R,
    ) -> io::Result<R> {
        // Layers created the same way have their tables at the same offsets, so
        // the layer number spreads them over the slots.
        const APART: usize = 61;
        let (layer, offset) = key;
        let number = (offset >> self.step_bits) as usize + layer * APART;
        let Some(slot) = self.slots.get(number & (self.slots.len() - 1)) else {
            return load().map(|piece| act(&piece));
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((held, piece)) = &*slot
            && *held == key
        {
            return Ok(act(piece));
        }
        let (_, piece) = slot.insert((key, load()?));
        Ok(act(piece))
    }
}

impl<T> fmt::Debug for DirectMappedCache<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DirectMappedCache")
            .field("count", &self.slots.len())
            .finish_non_exhaustive()
    }
}
