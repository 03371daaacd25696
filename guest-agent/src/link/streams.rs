use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound;

use vmcell_wire::StreamId;

use super::Stream;

/// The streams of a link, polled in round-robin order.
///
/// A stream that has reported [`Filled::Asleep`](super::stream::Filled::Asleep)
/// is skipped until it is woken: with hundreds of idle connections, one that is
/// busy would wait for all of them. Every access by [`get_mut`](Self::get_mut)
/// wakes a stream.
pub(crate) struct Streams {
    all: BTreeMap<StreamId, Stream>,
    awake: BTreeSet<StreamId>,
    /// The stream that was polled last.
    turn: Option<StreamId>,
}

impl Streams {
    pub(super) const fn new() -> Self {
        Self {
            all: BTreeMap::new(),
            awake: BTreeSet::new(),
            turn: None,
        }
    }

    pub(crate) fn insert(&mut self, id: StreamId, stream: Stream) {
        self.all.insert(id, stream);
        self.awake.insert(id);
    }

    pub(crate) fn remove(&mut self, id: &StreamId) -> Option<Stream> {
        self.awake.remove(id);
        self.all.remove(id)
    }

    /// Removes and returns all streams.
    pub(super) fn take_all(&mut self) -> BTreeMap<StreamId, Stream> {
        self.awake.clear();
        core::mem::take(&mut self.all)
    }

    pub(super) fn get(&self, id: &StreamId) -> Option<&Stream> {
        self.all.get(id)
    }

    /// Returns a stream and wakes it.
    pub(crate) fn get_mut(&mut self, id: &StreamId) -> Option<&mut Stream> {
        let stream = self.all.get_mut(id)?;
        self.awake.insert(*id);
        Some(stream)
    }

    pub(super) fn contains_key(&self, id: &StreamId) -> bool {
        self.all.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns how many streams are awake.
    pub(super) fn awake(&self) -> usize {
        self.awake.len()
    }

    pub(super) fn wake(&mut self, id: StreamId) {
        if self.all.contains_key(&id) {
            self.awake.insert(id);
        }
    }

    /// Excludes a stream from polling until it is woken.
    pub(super) fn sleep(&mut self, id: StreamId) {
        self.awake.remove(&id);
    }

    /// Returns the next stream in round-robin order.
    pub(super) fn next_in_turn(&mut self) -> Option<(StreamId, &mut Stream)> {
        let after = match self.turn {
            Some(turn) => self
                .awake
                .range((Bound::Excluded(turn), Bound::Unbounded))
                .next(),
            None => None,
        };
        let id = *after.or_else(|| self.awake.first())?;
        self.turn = Some(id);
        Some((id, self.all.get_mut(&id)?))
    }
}
