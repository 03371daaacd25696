use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use vmcell_wire::{StreamId, limits::MAX_STREAMS};

use super::{Lost, OpenError, stream::StreamState};

/// The streams that are open on a link: those whose close has not come yet.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    open: HashMap<StreamId, Arc<StreamState>>,
    last: Option<StreamId>,
}

impl Table {
    /// Enters a stream under an id that is free.
    pub(super) fn insert(&self, state: Arc<StreamState>) -> Result<StreamId, OpenError> {
        let mut streams = self.lock();
        if streams.open.len() >= MAX_STREAMS {
            return Err(OpenError::Full);
        }
        let mut id = streams.last.unwrap_or(StreamId::MAX).next();
        while streams.open.contains_key(&id) {
            id = id.next();
        }
        streams.last = Some(id);
        streams.open.insert(id, state);
        Ok(id)
    }

    pub(super) fn get(&self, id: StreamId) -> Option<Arc<StreamState>> {
        self.lock().open.get(&id).cloned()
    }

    pub(super) fn remove(&self, id: StreamId) {
        self.lock().open.remove(&id);
    }

    /// Tells every stream that nothing more will come.
    pub(super) fn fail_all(&self, lost: Lost) {
        let open = std::mem::take(&mut self.lock().open);
        for state in open.values() {
            state.fail(lost);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
