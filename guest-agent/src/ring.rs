use alloc::{boxed::Box, vec};

use rustix::io::Errno;

use crate::sys::Mapping;

/// A bounded buffer of a byte stream in which every byte has an absolute
/// offset, counted from the start of the stream.
///
/// ```text
///  offset 0        start               end
///    |  released    |  kept             |  not written yet
///    +--------------+-------------------+-----------------
/// ```
///
/// It begins small. The first time it runs empty after it was full it gets its
/// whole size, so a process that prints a line costs no mapping.
pub(crate) struct Ring {
    memory: Memory,
    capacity: usize,
    /// What the capacity becomes when it proves too small.
    largest: usize,
    was_full: bool,
    /// The offset that stands at the first byte of `memory`, a multiple of the
    /// capacity before `start`. It moves up whenever the ring runs empty, so
    /// that a stream with a fast reader touches few pages.
    origin: u64,
    start: u64,
    end: u64,
}

enum Memory {
    None,
    Small(Box<[u8]>),
    Large(Mapping),
}

const SMALL: usize = 2048;

impl Ring {
    pub(crate) fn new(largest: usize) -> Self {
        Self {
            memory: Memory::None,
            capacity: SMALL.min(largest),
            largest,
            was_full: false,
            origin: 0,
            start: 0,
            end: 0,
        }
    }

    /// The offset behind the last byte: how many bytes were ever written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn is_full(&self) -> bool {
        self.kept() >= self.capacity
    }

    /// Free memory to write to, as much as is in one piece. Empty if the ring
    /// is full.
    pub(crate) fn free_space(&mut self) -> Result<&mut [u8], Errno> {
        let from = self.position(self.end);
        let room = self.capacity.saturating_sub(self.kept());
        let until = self.capacity.min(from.saturating_add(room));
        if matches!(self.memory, Memory::None) {
            self.memory = Memory::new(self.capacity)?;
        }
        let memory = self.memory.as_mut_slice();
        Ok(memory.get_mut(from..until).unwrap_or_default())
    }

    /// Says that `count` bytes of the free space were written.
    pub(crate) fn wrote(&mut self, count: usize) {
        let room = self.capacity.saturating_sub(self.kept());
        self.end = self.end.saturating_add(to_u64(count.min(room)));
        self.was_full |= self.is_full();
    }

    /// The kept bytes from `offset` on, as many as are in one piece.
    pub(crate) fn bytes_from(&self, offset: u64) -> &[u8] {
        if offset < self.start || offset >= self.end {
            return &[];
        }
        let from = self.position(offset);
        let count = to_usize(self.end.saturating_sub(offset));
        let until = self.capacity.min(from.saturating_add(count));
        let memory = self.memory.as_slice();
        memory.get(from..until).unwrap_or_default()
    }

    /// Lets go of everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
        if self.start == self.end {
            self.origin = self.end;
            if self.was_full && self.capacity < self.largest {
                self.memory = Memory::None;
                self.capacity = self.largest;
            }
        }
    }

    fn kept(&self) -> usize {
        to_usize(self.end.saturating_sub(self.start))
    }

    fn position(&self, offset: u64) -> usize {
        let distance = offset.saturating_sub(self.origin);
        to_usize(distance.checked_rem(to_u64(self.capacity)).unwrap_or(0))
    }
}

impl Memory {
    fn new(size: usize) -> Result<Self, Errno> {
        Ok(if size <= SMALL {
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

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::{collections::VecDeque, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the obvious model: a queue of bytes.
        #[test]
        fn it_is_a_bounded_queue_with_offsets(
            largest in prop_oneof![1..50usize, 2000..9000usize],
            steps in prop::collection::vec((any::<bool>(), 1..3000usize), 1..200),
        ) {
            let mut ring = Ring::new(largest);
            let mut model = VecDeque::new();
            let (mut written, mut read) = (0u64, 0u64);
            for (write, count) in steps {
                if write {
                    let space = ring.free_space().unwrap();
                    let count = count.min(space.len());
                    for place in &mut space[..count] {
                        *place = written as u8;
                        model.push_back(written as u8);
                        written += 1;
                    }
                    ring.wrote(count);
                } else {
                    let bytes: Vec<u8> = ring.bytes_from(read).iter().copied().take(count).collect();
                    let expected: Vec<u8> = model.drain(..bytes.len()).collect();
                    prop_assert_eq!(&bytes, &expected);
                    read += bytes.len() as u64;
                    ring.release(read);
                }
                prop_assert_eq!(ring.end(), written);
                prop_assert_eq!(ring.is_full(), model.len() == ring.capacity);
                prop_assert!(ring.capacity <= largest);
                prop_assert_eq!(ring.bytes_from(read).is_empty(), model.is_empty());
                prop_assert!(ring.bytes_from(written).is_empty());
            }
        }
    }
}
