use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;
use vmcell_wire::{Header, WireError};

/// What waits to be written to a link, in order.
///
/// Adding never waits: control frames are few and small, and data is only
/// added as far as the guest gave credit for it.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Bytes>,
    /// Small frames behind the pieces, together.
    tail: Vec<u8>,
}

/// A payload up to this size is copied, so that it needs no write of its own.
const SMALL: usize = 4096;

impl Outgoing {
    /// Adds control frames.
    pub(super) fn control(
        &self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let mut queue = self.lock();
        let before = queue.tail.len();
        if let Err(error) = encode(&mut queue.tail) {
            queue.tail.truncate(before);
            return Err(error);
        }
        drop(queue);
        self.added.notify_one();
        Ok(())
    }

    /// Adds a data frame.
    pub(super) fn data(&self, header: [u8; Header::SIZE], payload: Bytes) {
        let mut queue = self.lock();
        queue.tail.extend_from_slice(&header);
        if payload.len() <= SMALL {
            queue.tail.extend_from_slice(&payload);
        } else {
            queue.seal_tail();
            queue.pieces.push_back(payload);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Waits for something to write and takes all of it.
    ///
    /// Cancel safe.
    pub(super) async fn take(&self) -> VecDeque<Bytes> {
        loop {
            let pieces = {
                let mut queue = self.lock();
                queue.seal_tail();
                std::mem::take(&mut queue.pieces)
            };
            if !pieces.is_empty() {
                return pieces;
            }
            self.added.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(std::mem::take(&mut self.tail).into());
        }
    }
}
