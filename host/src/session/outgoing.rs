use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use bytes::Bytes;
use tokio::{net::UnixStream, sync::Notify};
use vmcell_wire::{Header, StreamId, WireError, encode};

use super::rate::LinkRate;

/// The queue of frames to be written to a link.
///
/// Adding never waits: control frames are few and small. Before adding data,
/// callers check whether the queue [is full](Self::is_full): a guest may grant
/// credit and then not read.
///
/// When a link is lost, its queue is dropped. Frames carry the [`Epoch`] that
/// they were made for; those of an earlier epoch are dropped.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    added: Notify,
    /// How many bytes were written to links.
    written_bytes: AtomicU64,
    /// How fast they may be written.
    rate: LinkRate,
}

/// The sequence number of a link of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

#[derive(Debug, Default)]
struct Queue {
    epoch: Epoch,
    pieces: VecDeque<Bytes>,
    /// Small frames that follow the pieces, joined.
    tail: Vec<u8>,
    /// Unsent bytes of [peer-caused](PeerCaused) control frames.
    control_bytes: usize,
    /// Unsent bytes of data.
    data_bytes: usize,
    /// To be woken when there is room for data.
    wakers: Vec<Waker>,
    /// The link, while it is in use. This does not keep it open.
    link: Weak<UnixStream>,
    /// The writer is writing pieces that it has taken.
    writing: bool,
    /// Set while the VM is paused: only this many pieces, which were added before, are
    /// to be written.
    held_after: Option<usize>,
}

/// Whether the peer can make this side queue a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerCaused {
    Yes,
    No,
}

/// Payloads up to this size are copied into the tail, which saves a write.
const MAX_COPIED_PAYLOAD: usize = 4096;

/// The limit of queued data, not counting what is being written.
const MAX_QUEUED_DATA: usize = 1024 * 1024;

impl Outgoing {
    pub(super) fn epoch(&self) -> Epoch {
        self.lock().epoch
    }

    /// Drops the queue, because the link is lost, and starts the next epoch.
    pub(super) fn start_next_epoch(&self) -> Epoch {
        let mut queue = self.lock();
        let epoch = Epoch(queue.epoch.0 + 1);
        let held_after = queue.held_after.map(|_| 0);
        let old = std::mem::replace(
            &mut *queue,
            Queue {
                epoch,
                held_after,
                ..Queue::default()
            },
        );
        drop(queue);
        old.wakers.into_iter().for_each(Waker::wake);
        epoch
    }

    /// Sets the link, so that callers can write small frames themselves.
    pub(super) fn set_link(&self, link: &Arc<UnixStream>) {
        self.lock().link = Arc::downgrade(link);
    }

    /// Holds back all frames that are added from now on.
    pub(super) fn hold(&self) {
        let mut queue = self.lock();
        queue.seal_tail();
        let before = queue.pieces.len();
        queue.held_after.get_or_insert(before);
    }

    /// Sends a frame before those that are held back.
    pub(super) fn overtake(&self, epoch: Epoch, frame: Vec<u8>) {
        let mut queue = self.lock();
        if queue.epoch != epoch {
            return;
        }
        queue.seal_tail();
        let at = queue.held_after.unwrap_or(queue.pieces.len());
        let at = at.min(queue.pieces.len());
        queue.pieces.insert(at, frame.into());
        queue.held_after = queue.held_after.map(|_| at + 1);
        drop(queue);
        self.added.notify_one();
    }

    /// Sends what was held back.
    pub(super) fn release(&self) {
        self.lock().held_after = None;
        self.added.notify_one();
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

    /// Adds a request of the host. It does not count as unsent control bytes,
    /// from which the host concludes that the guest does not read.
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

    /// Adds the acknowledgement of a close. It is sent with the next frame,
    /// because nothing waits for it.
    pub(super) fn ack(&self, epoch: Epoch, stream: StreamId) {
        // A frame of a fixed size always fits.
        let _ = self.add(epoch, PeerCaused::Yes, |out| {
            encode::ack(out, stream);
            Ok(())
        });
    }

    /// Returns the unsent bytes of control frames, without requests.
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

    /// Returns whether the limit of queued data is reached. If so, the waker is
    /// woken when there is room.
    pub(super) fn is_full(&self, waker: &Waker) -> bool {
        let mut queue = self.lock();
        let full = queue.data_bytes >= MAX_QUEUED_DATA;
        if full && !queue.wakers.iter().any(|other| other.will_wake(waker)) {
            queue.wakers.push(waker.clone());
        }
        full
    }

    /// Returns how fast bytes may be written to links.
    pub(super) fn rate(&self) -> &LinkRate {
        &self.rate
    }

    /// Counts bytes that were written to a link.
    pub(super) fn count_written(&self, bytes: usize) {
        self.rate.count(bytes);
        self.written_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns how many bytes were written to links.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Waits until the queue is not empty and takes all of it.
    ///
    /// Cancel safe.
    pub(super) async fn take(&self) -> VecDeque<Bytes> {
        loop {
            let (pieces, wakers) = {
                let mut queue = self.lock();
                queue.take()
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

    /// Writes the queue at once if it can, else wakes the writer. A caller waits
    /// for the reply, and waking the writer takes longer than a write.
    fn send(&self, mut queue: MutexGuard<'_, Queue>) {
        let unwritten = queue.tail.len();
        let is_empty = self.rate.is_ready() && queue.write_tail();
        self.count_written(unwritten.saturating_sub(queue.tail.len()));
        if !is_empty {
            drop(queue);
            self.added.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Takes everything that may be written, and who waits for room.
    fn take(&mut self) -> (VecDeque<Bytes>, Vec<Waker>) {
        if let Some(count) = &mut self.held_after {
            let count = std::mem::take(count).min(self.pieces.len());
            self.writing = count > 0;
            return (self.pieces.drain(..count).collect(), Vec::new());
        }
        self.seal_tail();
        self.writing = !self.pieces.is_empty();
        self.control_bytes = 0;
        self.data_bytes = 0;
        (
            std::mem::take(&mut self.pieces),
            std::mem::take(&mut self.wakers),
        )
    }

    /// Writes the small frames if nothing precedes them. Returns whether the
    /// queue is empty; if not, the writer has to write the rest.
    fn write_tail(&mut self) -> bool {
        if self.writing || !self.pieces.is_empty() || self.held_after.is_some() {
            return false;
        }
        let Some(link) = self.link.upgrade() else {
            return false;
        };
        // The writer will get the same error and report it.
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
