use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound;

use vmcell_wire::StreamId;

use super::Stream;

/// The streams of a link, and whose turn it is.
///
/// Each is asked in its turn whether it has something to say, unless it has
/// said that it sleeps: with hundreds of idle connections, one that is busy
/// would wait for all of them. Whatever is done to a stream wakes it.
pub(crate) struct Streams {
    all: BTreeMap<StreamId, Stream>,
    awake: BTreeSet<StreamId>,
    /// The stream that was asked last.
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

    /// All of them, which are then no streams of the link any more.
    pub(super) fn take_all(&mut self) -> BTreeMap<StreamId, Stream> {
        self.awake.clear();
        core::mem::take(&mut self.all)
    }

    pub(super) fn get(&self, id: &StreamId) -> Option<&Stream> {
        self.all.get(id)
    }

    /// Wakes the stream.
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

    /// How many are to be asked.
    pub(super) fn awake(&self) -> usize {
        self.awake.len()
    }

    pub(super) fn wake(&mut self, id: StreamId) {
        if self.all.contains_key(&id) {
            self.awake.insert(id);
        }
    }

    /// A stream need not be asked before it is woken.
    pub(super) fn sleep(&mut self, id: StreamId) {
        self.awake.remove(&id);
    }

    /// The stream whose turn it is.
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
