use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::Waker,
};

use bytes::Bytes;
use tokio::{net::UnixStream, sync::Notify};
use vmcell_wire::{Header, StreamId, WireError, encode};

/// What waits to be written to a link, in order.
///
/// Adding never waits: control frames are few and small. Who adds data looks
/// first whether the queue [is full](Self::is_full): credit is a promise to
/// read that a guest need not keep.
///
/// When a link is lost, so is what waited for it. Frames name the [`Epoch`] that
/// they were made for, and those for a link that is gone are dropped.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    added: Notify,
}

/// The number of a link among those that a session has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

#[derive(Debug, Default)]
struct Queue {
    epoch: Epoch,
    pieces: VecDeque<Bytes>,
    /// Small frames behind the pieces, together.
    tail: Vec<u8>,
    /// How many bytes of control frames there are that count.
    control_bytes: usize,
    /// How many bytes of data there are.
    data_bytes: usize,
    /// They wait for room for data.
    wakers: Vec<Waker>,
    /// The link, while there is a conversation on it. This does not keep it
    /// open.
    link: Weak<UnixStream>,
    /// The writer has taken something and is not back yet.
    writing: bool,
}

/// Whether a frame is one that the other end can make us queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerCaused {
    Yes,
    No,
}

/// A payload up to this size is copied, so that it needs no write of its own.
const MAX_COPIED_PAYLOAD: usize = 4096;

/// So much data may wait here, beside as much that is being written.
const MAX_QUEUED_DATA: usize = 1024 * 1024;

impl Outgoing {
    pub(super) fn epoch(&self) -> Epoch {
        self.lock().epoch
    }

    /// The link is lost, and with it all that waited for it.
    pub(super) fn start_next_epoch(&self) -> Epoch {
        let mut queue = self.lock();
        let epoch = Epoch(queue.epoch.0 + 1);
        let old = std::mem::replace(
            &mut *queue,
            Queue {
                epoch,
                ..Queue::default()
            },
        );
        drop(queue);
        old.wakers.into_iter().for_each(Waker::wake);
        epoch
    }

    /// From now on what is small can be written by those who add it.
    pub(super) fn set_link(&self, link: &Arc<UnixStream>) {
        self.lock().link = Arc::downgrade(link);
    }

    /// Adds control frames for the link of this epoch.
    pub(super) fn control(
        &self,
        epoch: Epoch,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        if self.add(epoch, PeerCaused::Yes, encode)?.is_some() {
            self.added.notify_one();
        }
        Ok(())
    }

    /// Adds what the host asks for of its own accord. However much that is, it
    /// does not mean that the guest does not read.
    pub(super) fn request(
        &self,
        epoch: Epoch,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        if let Some(queue) = self.add(epoch, PeerCaused::No, encode)? {
            self.send(queue);
        }
        Ok(())
    }

    /// Adds the word that a close has come. It goes out with the next frame:
    /// nobody waits for it.
    pub(super) fn ack(&self, epoch: Epoch, stream: StreamId) {
        // A frame of a fixed size always fits.
        let _ = self.add(epoch, PeerCaused::Yes, |out| {
            encode::ack(out, stream);
            Ok(())
        });
    }

    /// How many bytes of control frames wait, but for requests.
    pub(super) fn unsent_control(&self) -> usize {
        self.lock().control_bytes
    }

    /// Adds a data frame for the link of this epoch.
    pub(super) fn data(&self, epoch: Epoch, header: [u8; Header::SIZE], payload: Bytes) {
        let mut queue = self.lock();
        if queue.epoch != epoch {
            return;
        }
        queue.tail.extend_from_slice(&header);
        queue.data_bytes += payload.len();
        if payload.len() <= MAX_COPIED_PAYLOAD {
            queue.tail.extend_from_slice(&payload);
        } else {
            queue.seal_tail();
            queue.pieces.push_back(payload);
        }
        self.send(queue);
    }

    /// Whether no more data should be added for now. Then the waker is woken
    /// when that changes.
    pub(super) fn is_full(&self, waker: &Waker) -> bool {
        let mut queue = self.lock();
        let full = queue.data_bytes >= MAX_QUEUED_DATA;
        if full && !queue.wakers.iter().any(|other| other.will_wake(waker)) {
            queue.wakers.push(waker.clone());
        }
        full
    }

    /// Waits for something to write and takes all of it.
    ///
    /// Cancel safe.
    pub(super) async fn take(&self) -> VecDeque<Bytes> {
        loop {
            let (pieces, wakers) = {
                let mut queue = self.lock();
                queue.seal_tail();
                queue.writing = !queue.pieces.is_empty();
                queue.control_bytes = 0;
                queue.data_bytes = 0;
                (
                    std::mem::take(&mut queue.pieces),
                    std::mem::take(&mut queue.wakers),
                )
            };
            wakers.into_iter().for_each(Waker::wake);
            if !pieces.is_empty() {
                return pieces;
            }
            self.added.notified().await;
        }
    }

    fn add(
        &self,
        epoch: Epoch,
        peer_caused: PeerCaused,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
    ) -> Result<Option<MutexGuard<'_, Queue>>, WireError> {
        let mut queue = self.lock();
        if queue.epoch != epoch {
            return Ok(None);
        }
        let before = queue.tail.len();
        if let Err(error) = encode(&mut queue.tail) {
            queue.tail.truncate(before);
            return Err(error);
        }
        if peer_caused == PeerCaused::Yes {
            queue.control_bytes += queue.tail.len() - before;
        }
        Ok(Some(queue))
    }

    /// Has written what waits. Somebody waits for an answer to it, and the
    /// writer's turn would take longer than a write.
    fn send(&self, mut queue: MutexGuard<'_, Queue>) {
        if !queue.write_tail() {
            drop(queue);
            self.added.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Writes the small frames, if nothing goes before them. False: there is
    /// something left for the writer.
    fn write_tail(&mut self) -> bool {
        if self.writing || !self.pieces.is_empty() {
            return false;
        }
        let Some(link) = self.link.upgrade() else {
            return false;
        };
        // What goes wrong will for the writer as well, who tells.
        if let Ok(count) = link.try_write(&self.tail) {
            self.tail.drain(..count);
        }
        if !self.tail.is_empty() {
            return false;
        }
        self.control_bytes = 0;
        self.data_bytes = 0;
        self.wakers.drain(..).for_each(Waker::wake);
        true
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(std::mem::take(&mut self.tail).into());
        }
    }
}
