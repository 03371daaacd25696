use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hyper::header::HeaderValue;
use rmcp::model::RequestId;
use serde::Deserialize;

/// The ids of requests that are not answered yet, with their session.
#[derive(Clone, Default)]
pub(super) struct RequestIds(Arc<Mutex<HashSet<Key>>>);

type Key = (HeaderValue, RequestId);

/// An id, which can be used again when this is dropped.
pub(super) struct UsedId {
    ids: RequestIds,
    key: Key,
}

#[derive(Deserialize)]
struct Message {
    id: RequestId,
}

impl RequestIds {
    /// Uses the id of a message, if it has one. Returns the id if it is in use.
    pub(super) fn add(
        &self,
        session: &HeaderValue,
        message: &[u8],
    ) -> Result<Option<UsedId>, RequestId> {
        let Ok(Message { id }) = serde_json::from_slice(message) else {
            return Ok(None);
        };
        let key = (session.clone(), id);
        if !self.lock().insert(key.clone()) {
            return Err(key.1);
        }
        let ids = self.clone();
        Ok(Some(UsedId { ids, key }))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UsedId {
    fn drop(&mut self) {
        self.ids.lock().remove(&self.key);
    }
}
