use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::{Notify, futures::Notified};
use vmcell_wire::{Header, WireError};

/// What waits to be written to a link, in order.
///
/// Adding never waits: control frames are few and small. Who adds data looks
/// first whether the queue [is full](Self::is_full): credit is a promise to
/// read that a guest need not keep.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    added: Notify,
    drained: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Bytes>,
    /// Small frames behind the pieces, together.
    tail: Vec<u8>,
    /// How many bytes of control frames there are.
    control: usize,
    /// How many bytes of data there are.
    data: usize,
}

/// A payload up to this size is copied, so that it needs no write of its own.
const SMALL: usize = 4096;

/// So much data may wait here, beside as much that is being written.
const MAX_DATA: usize = 1024 * 1024;

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
        queue.control += queue.tail.len() - before;
        drop(queue);
        self.added.notify_one();
        Ok(())
    }

    /// How many bytes of control frames wait.
    pub(super) fn unsent_control(&self) -> usize {
        self.lock().control
    }

    /// Adds a data frame.
    pub(super) fn data(&self, header: [u8; Header::SIZE], payload: Bytes) {
        let mut queue = self.lock();
        queue.tail.extend_from_slice(&header);
        queue.data += payload.len();
        if payload.len() <= SMALL {
            queue.tail.extend_from_slice(&payload);
        } else {
            queue.seal_tail();
            queue.pieces.push_back(payload);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Whether no more data should be added for now.
    pub(super) fn is_full(&self) -> bool {
        self.lock().data >= MAX_DATA
    }

    /// Waits until the queue was taken to be written.
    pub(super) fn drained(&self) -> Notified<'_> {
        self.drained.notified()
    }

    /// Waits for something to write and takes all of it.
    ///
    /// Cancel safe.
    pub(super) async fn take(&self) -> VecDeque<Bytes> {
        loop {
            let pieces = {
                let mut queue = self.lock();
                queue.seal_tail();
                queue.control = 0;
                queue.data = 0;
                std::mem::take(&mut queue.pieces)
            };
            if !pieces.is_empty() {
                self.drained.notify_waiters();
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
