use bytes::{Bytes, BytesMut};
use vmcell_wire::{Channel, WireError, credit::ReceiveWindow};

use super::WINDOW;

/// Bytes of one channel that have arrived and wait for their reader.
///
/// They are in one buffer of its own, not in pieces of what was read from the
/// link: a guest that sends single bytes cannot make each one cost a page.
#[derive(Debug)]
pub(super) struct Inbox {
    buffer: BytesMut,
    window: ReceiveWindow,
    received: u64,
    ended: bool,
}

impl Inbox {
    pub(super) fn new(channel: Channel) -> Self {
        Self {
            buffer: BytesMut::new(),
            window: ReceiveWindow::new(channel, WINDOW),
            received: 0,
            ended: false,
        }
    }

    /// How many bytes ever arrived.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes bytes that were read from the link.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.arrived(bytes.len())?;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Lets `read` write up to `most` bytes straight into the buffer.
    pub(super) fn fill<E: From<WireError>>(
        &mut self,
        most: usize,
        read: impl FnOnce(&mut bytes::buf::Limit<&mut BytesMut>) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.buffer.reserve(most);
        let count = read(&mut bytes::BufMut::limit(&mut self.buffer, most))?;
        self.arrived(count)?;
        Ok(count)
    }

    /// The guest says that this was all.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes what is there, and the credit to send for it.
    pub(super) fn take(&mut self) -> Option<(Bytes, Option<u32>)> {
        if self.buffer.is_empty() {
            return None;
        }
        let bytes = self.buffer.split().freeze();
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let credit = self.window.consumed(count);
        Some((bytes, credit.filter(|_| !self.ended)))
    }

    fn arrived(&mut self, count: usize) -> Result<(), WireError> {
        if self.ended && count > 0 {
            return Err(WireError::Malformed);
        }
        self.received += count as u64;
        self.window
            .arrived(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
