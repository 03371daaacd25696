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
/// Memory is mapped with the first byte and given back with the ring.
pub(crate) struct Ring {
    memory: Option<Mapping>,
    capacity: usize,
    /// The offset that stands at the first byte of `memory`, a multiple of the
    /// capacity before `start`. It moves up whenever the ring runs empty, so
    /// that a stream with a fast reader touches few pages.
    origin: u64,
    start: u64,
    end: u64,
}

impl Ring {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            memory: None,
            capacity,
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
        if self.memory.is_none() {
            self.memory = Some(Mapping::new(self.capacity)?);
        }
        Ok(self
            .memory
            .as_mut()
            .and_then(|memory| memory.as_mut_slice().get_mut(from..until))
            .unwrap_or_default())
    }

    /// Says that `count` bytes of the free space were written.
    pub(crate) fn wrote(&mut self, count: usize) {
        let room = self.capacity.saturating_sub(self.kept());
        self.end = self.end.saturating_add(to_u64(count.min(room)));
    }

    /// The kept bytes from `offset` on, as many as are in one piece.
    pub(crate) fn bytes_from(&self, offset: u64) -> &[u8] {
        if offset < self.start || offset >= self.end {
            return &[];
        }
        let from = self.position(offset);
        let count = to_usize(self.end.saturating_sub(offset));
        let until = self.capacity.min(from.saturating_add(count));
        self.memory
            .as_ref()
            .and_then(|memory| memory.as_slice().get(from..until))
            .unwrap_or_default()
    }

    /// Lets go of everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
        if self.start == self.end {
            self.origin = self.end;
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
            capacity in 1..50usize,
            steps in prop::collection::vec((any::<bool>(), 1..60usize), 1..200),
        ) {
            let mut ring = Ring::new(capacity);
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
                prop_assert_eq!(ring.is_full(), model.len() == capacity);
                prop_assert_eq!(ring.bytes_from(read).is_empty(), model.is_empty());
                prop_assert!(ring.bytes_from(written).is_empty());
            }
        }
    }
}
