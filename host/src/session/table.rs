use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use vmcell_wire::{StreamId, limits::MAX_STREAMS};

use super::{LinkError, OpenError, state::StreamState};

/// The open streams of a session: those for which no close has arrived.
#[derive(Debug, Default)]
pub(super) struct StreamTable(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    open: HashMap<StreamId, Arc<StreamState>>,
    last: Option<StreamId>,
}

impl StreamTable {
    /// Creates a stream with a free id.
    pub(super) fn insert(
        &self,
        make: impl FnOnce(StreamId) -> Result<Arc<StreamState>, OpenError>,
    ) -> Result<(StreamId, Arc<StreamState>), OpenError> {
        let mut streams = self.lock();
        if streams.open.len() >= MAX_STREAMS {
            return Err(OpenError::Full);
        }
        let mut id = streams.last.unwrap_or(StreamId::MAX).next();
        while streams.open.contains_key(&id) {
            id = id.next();
        }
        let state = make(id)?;
        streams.last = Some(id);
        streams.open.insert(id, state.clone());
        Ok((id, state))
    }

    pub(super) fn get(&self, id: StreamId) -> Option<Arc<StreamState>> {
        self.lock().open.get(&id).cloned()
    }

    pub(super) fn remove(&self, id: StreamId) {
        self.lock().open.remove(&id);
    }

    /// Returns all open streams by id, which is mostly the order in which they
    /// were opened.
    pub(super) fn all(&self) -> Vec<(StreamId, Arc<StreamState>)> {
        let streams = self.lock();
        let open = streams.open.iter();
        let mut all: Vec<_> = open.map(|(id, state)| (*id, state.clone())).collect();
        drop(streams);
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Fails every stream, and empties the table.
    pub(super) fn fail_all(&self, error: LinkError) {
        let open = std::mem::take(&mut self.lock().open);
        for state in open.values() {
            state.fail(error);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
