use std::{
    fmt, io,
    sync::{Mutex, PoisonError},
};

/// Which of a chain's layers, and where in its file.
pub(super) type Key = (usize, u64);

/// A slot: what it holds, and of where.
type Slot<T> = Mutex<Option<(Key, T)>>;

/// Pieces of files that were read lately. Every piece has one slot that it can
/// be in, so that there is nothing to decide about what goes: its predecessor.
pub(super) struct Slots<T> {
    slots: Box<[Slot<T>]>,
    /// Pieces are about 2 to this power apart.
    step_bits: u32,
}

impl<T> Slots<T> {
    /// Room for `count` pieces, a power of two.
    pub(super) fn new(count: usize, step_bits: u32) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            step_bits,
        }
    }

    /// Does something short with the piece at this place, which `load` reads if
    /// it is not there.
    pub(super) fn with<R>(
        &self,
        key: Key,
        load: impl FnOnce() -> io::Result<T>,
        act: impl FnOnce(&T) -> R,
    ) -> io::Result<R> {
        // Layers made alike have their tables at the same places.
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

impl<T> fmt::Debug for Slots<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Slots")
            .field("count", &self.slots.len())
            .finish_non_exhaustive()
    }
}
