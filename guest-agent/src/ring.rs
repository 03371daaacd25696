use alloc::{boxed::Box, vec};

use rustix::io::Errno;
use zeroize::Zeroize as _;

use crate::sys::Mapping;

/// A ring buffer with the last bytes of a stream. Every byte has an absolute offset,
/// counted from the start of the stream.
///
/// ```text
///  offset 0        start               end
///    |  overwritten |  kept             |  not written yet
///    +--------------+-------------------+-----------------
/// ```
///
/// It starts small and grows to its maximum when it is full for the first time, so
/// a process that prints a line costs no mapping.
pub(crate) struct Ring {
    memory: Memory,
    capacity: usize,
    /// The capacity after growing.
    max_capacity: usize,
    /// The offset that is stored at the first byte of `memory`.
    origin: u64,
    start: u64,
    end: u64,
}

enum Memory {
    None,
    Small(Box<[u8]>),
    Large(Mapping),
}

const INITIAL_CAPACITY: usize = 2048;

impl Ring {
    pub(crate) fn new(max_capacity: usize) -> Self {
        Self {
            memory: Memory::None,
            capacity: INITIAL_CAPACITY.min(max_capacity),
            max_capacity,
            origin: 0,
            start: 0,
            end: 0,
        }
    }

    /// Returns the offset of the oldest byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the offset behind the last byte, which is the number of bytes that
    /// were ever written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Raises the maximum capacity to this, if that is more.
    pub(crate) fn may_grow_to(&mut self, max_capacity: usize) {
        self.max_capacity = self.max_capacity.max(max_capacity);
    }

    /// Raises the maximum capacity by this.
    pub(crate) fn may_grow_by(&mut self, more: usize) {
        self.max_capacity = self.max_capacity.saturating_add(more);
    }

    /// Sets the maximum capacity. The oldest bytes that do not fit are dropped.
    pub(crate) fn resize(&mut self, max_capacity: usize) -> Result<(), Errno> {
        self.max_capacity = max_capacity;
        if self.capacity <= max_capacity {
            return Ok(());
        }
        let oldest = self.end.saturating_sub(to_u64(max_capacity));
        self.start = self.start.max(oldest);
        self.grow()
    }

    /// Returns whether a byte can be written without overwriting one from `held` on.
    pub(crate) fn has_room(&self, held: u64) -> bool {
        self.kept_from(held) < self.max_capacity
    }

    /// Returns memory to write to, as far as it is contiguous and without bytes from
    /// `held` on. It is empty if there is no room.
    pub(crate) fn room(&mut self, held: u64) -> Result<&mut [u8], Errno> {
        if matches!(self.memory, Memory::None) {
            self.memory = Memory::new(self.capacity)?;
        }
        if self.kept_from(self.start) >= self.capacity && self.capacity < self.max_capacity {
            self.grow()?;
        }
        let from = self.position(self.end);
        let room = self.capacity.saturating_sub(self.kept_from(held));
        let until = self.capacity.min(from.saturating_add(room));
        let memory = self.memory.as_mut_slice();
        Ok(memory.get_mut(from..until).unwrap_or_default())
    }

    /// Adds the first `count` bytes of the [room](Self::room) to the stream.
    pub(crate) fn wrote(&mut self, count: usize) {
        self.end = self.end.saturating_add(to_u64(count));
        let oldest = self.end.saturating_sub(to_u64(self.capacity));
        self.start = self.start.max(oldest);
    }

    /// Returns the kept bytes from `offset` on, in two pieces.
    pub(crate) fn bytes_from(&self, offset: u64) -> [&[u8]; 2] {
        if offset < self.start || offset >= self.end {
            return [&[], &[]];
        }
        let from = self.position(offset);
        let count = self.kept_from(offset);
        let memory = self.memory.as_slice();
        let until = self.capacity.min(from.saturating_add(count));
        let first = memory.get(from..until).unwrap_or_default();
        let rest = count.saturating_sub(first.len());
        [first, memory.get(..rest).unwrap_or_default()]
    }

    /// Passes the kept bytes from `offset` on, as far as they are contiguous, to
    /// `with`, with `prefix` in front. The prefix replaces the bytes before them for
    /// the duration of the call. Returns `None` if there is no room for it.
    pub(crate) fn with_prefix<const N: usize, T>(
        &mut self,
        offset: u64,
        prefix: &[u8; N],
        with: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let [piece, _] = self.bytes_from(offset);
        let length = N.saturating_add(piece.len());
        let from = self.position(offset).checked_sub(N)?;
        let until = from.checked_add(length)?;
        let lent = self.memory.as_mut_slice().get_mut(from..until)?;
        let place: &mut [u8; N] = lent.first_chunk_mut()?;
        let saved = core::mem::replace(place, *prefix);
        let result = with(lent);
        *lent.first_chunk_mut()? = saved;
        Some(result)
    }

    /// Drops all bytes and their memory; offsets go on.
    pub(crate) fn clear(&mut self) {
        self.memory = Memory::None;
        self.capacity = INITIAL_CAPACITY.min(self.max_capacity);
        self.start = self.end;
        self.origin = self.end;
    }

    /// Frees unused memory. Nothing may be written afterwards.
    pub(crate) fn shrink_to_fit(&mut self) {
        let kept = self.kept_from(self.start);
        if kept == 0 {
            self.clear();
        } else if kept.saturating_mul(2) <= self.capacity {
            let mut memory = vec![0; kept].into_boxed_slice();
            self.copy_kept_to(&mut memory);
            self.memory = Memory::Small(memory);
            self.capacity = kept;
            self.origin = self.start;
        }
    }

    /// Returns how many bytes are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept_from(self.start)
    }

    fn grow(&mut self) -> Result<(), Errno> {
        let mut memory = Memory::new(self.max_capacity)?;
        self.copy_kept_to(memory.as_mut_slice());
        self.memory = memory;
        self.capacity = self.max_capacity;
        self.origin = self.start;
        Ok(())
    }

    fn copy_kept_to(&self, place: &mut [u8]) {
        let [first, second] = self.bytes_from(self.start);
        if let Some((front, back)) = place.split_at_mut_checked(first.len()) {
            front.copy_from_slice(first);
            if let Some(back) = back.get_mut(..second.len()) {
                back.copy_from_slice(second);
            }
        }
    }

    /// Returns how many bytes are kept from `offset` on.
    fn kept_from(&self, offset: u64) -> usize {
        to_usize(self.end.saturating_sub(offset.max(self.start)))
    }

    fn position(&self, offset: u64) -> usize {
        let distance = offset.saturating_sub(self.origin);
        to_usize(distance.checked_rem(to_u64(self.capacity)).unwrap_or(0))
    }
}

impl Memory {
    fn new(size: usize) -> Result<Self, Errno> {
        Ok(if size <= INITIAL_CAPACITY {
            Self::Small(vec![0; size].into_boxed_slice())
        } else {
            Self::Large(Mapping::new(size)?)
        })
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Small(memory) => memory,
            Self::Large(memory) => memory.as_slice(),
        }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Self::None => &mut [],
            Self::Small(memory) => memory,
            Self::Large(memory) => memory.as_mut_slice(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Programs print secrets. The kernel zeroes a mapping, but nobody the heap.
        if let Self::Small(memory) = self {
            memory.zeroize();
        }
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// An operation on a ring.
    #[derive(Clone, Debug)]
    enum Step {
        Write(usize),
        /// The reader acknowledges up to this many bytes.
        Acknowledge(usize),
        Enlarge(usize),
        Resize(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (1..3000usize).prop_map(Step::Write),
            2 => (1..3000usize).prop_map(Step::Acknowledge),
            1 => (1..9000usize).prop_map(Step::Enlarge),
            1 => (1..9000usize).prop_map(Step::Resize),
        ];
        prop::collection::vec(step, 1..200)
    }

    fn kept(ring: &Ring, offset: u64) -> Vec<u8> {
        ring.bytes_from(offset).concat()
    }

    proptest! {
        /// Against the obvious model: everything that was ever written.
        #[test]
        fn it_keeps_the_last_bytes_and_never_overwrites_what_is_held(
            max_capacity in prop_oneof![1..50usize, 2000..9000usize],
            hold in any::<bool>(),
            steps in steps(),
        ) {
            let mut ring = Ring::new(max_capacity);
            let mut limit = max_capacity;
            let mut smallest = max_capacity;
            let mut all: Vec<u8> = Vec::new();
            let mut acknowledged = 0;
            for step in steps {
                match step {
                    Step::Write(count) => {
                        let held = if hold { acknowledged } else { ring.end() };
                        prop_assert_eq!(ring.has_room(held), all.len() - (held as usize) < limit);
                        let room = ring.room(held).unwrap();
                        let count = count.min(room.len());
                        prop_assert!(count > 0 || all.len() - (held as usize) >= limit);
                        for place in &mut room[..count] {
                            *place = (all.len() % 251) as u8;
                            all.push(*place);
                        }
                        ring.wrote(count);
                    }
                    Step::Acknowledge(count) => {
                        acknowledged = ring.end().min(acknowledged + count as u64);
                    }
                    Step::Enlarge(size) => {
                        ring.may_grow_to(size);
                        limit = limit.max(size);
                    }
                    Step::Resize(_) if hold => {}
                    Step::Resize(size) => {
                        ring.resize(size).unwrap();
                        limit = size;
                        smallest = smallest.min(size);
                    }
                }
                prop_assert_eq!(ring.end(), all.len() as u64);
                prop_assert!(!hold || ring.start() <= acknowledged);
                prop_assert!(ring.kept() <= limit);
                // Whatever fits the smallest size it ever had is there.
                prop_assert!(ring.kept() >= all.len().min(smallest));
                let start = ring.start() as usize;
                prop_assert_eq!(&kept(&ring, ring.start())[..], &all[start..]);
                prop_assert!(kept(&ring, ring.end()).is_empty());
                let middle = start + (all.len() - start) / 2;
                prop_assert_eq!(&kept(&ring, middle as u64)[..], &all[middle..]);
                let piece = ring.bytes_from(middle as u64)[0].to_vec();
                let lent = ring.with_prefix(middle as u64, b"PREFIX", <[u8]>::to_vec);
                if let Some(lent) = lent {
                    prop_assert_eq!(lent, [b"PREFIX", &piece[..]].concat());
                }
                prop_assert_eq!(&kept(&ring, ring.start())[..], &all[start..]);
            }
            let start = ring.start() as usize;
            ring.shrink_to_fit();
            prop_assert_eq!(&kept(&ring, start as u64)[..], &all[start..]);
            prop_assert!(ring.capacity <= 2 * ring.kept().max(INITIAL_CAPACITY));
            ring.clear();
            prop_assert_eq!((ring.start(), ring.end()), (all.len() as u64, all.len() as u64));
            prop_assert_eq!(ring.kept(), 0);
        }
    }
}
