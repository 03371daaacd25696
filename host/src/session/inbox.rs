use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use vmcell_wire::{Channel, Position, WireError, credit::ReceiveWindow, limits::MAX_GAPS};

use super::{WINDOW, output_mask::OutputMask};
use crate::redaction::{SecretSet, Thoroughness};

/// Bytes of one channel that have arrived and were not read yet.
///
/// They are copied into one buffer instead of keeping slices of the link's
/// buffers: a guest that sends single bytes cannot make each one cost a page.
///
/// ```text
///  offset      taken               arrived
///    |  read     |  buffer, gaps     |  to come
///    +-----------+-------------------+---------
/// ```
pub(super) struct Inbox {
    channel: Channel,
    buffer: BytesMut,
    /// In order of their offsets. Each one follows the bytes before its offset.
    gaps: VecDeque<Gap>,
    window: ReceiveWindow,
    taken: u64,
    arrived: u64,
    ended: bool,
    /// The offset of the first byte that is returned. Those before it are only searched.
    first: u64,
    mask: Option<OutputMask>,
}

/// Whether anything can arrive after what has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayFollow {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    at: u64,
    bytes: u64,
}

/// What a reader takes from an inbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InboxItem {
    /// Bytes, and the credit to grant for them.
    Bytes(Bytes, Option<u32>),
    /// The guest dropped this many bytes.
    Gap(u64),
    /// Bytes that are not returned.
    Skipped(Option<u32>),
}

/// Prints no contents: the bytes may be secrets.
impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl Inbox {
    /// Creates an inbox from which bytes are taken from the offset `first` on.
    pub(super) fn new(channel: Channel, first: u64) -> Self {
        Self {
            channel,
            first,
            buffer: BytesMut::new(),
            gaps: VecDeque::new(),
            window: ReceiveWindow::new(channel, WINDOW),
            taken: 0,
            arrived: 0,
            ended: false,
            mask: None,
        }
    }

    /// Masks these secrets in what was not read, and in what will arrive.
    pub(super) fn mask(&mut self, secrets: &Arc<SecretSet>, thoroughness: Thoroughness) {
        if let Some(mask) = &self.mask
            && Arc::ptr_eq(mask.secrets(), secrets)
        {
            return;
        }
        let new = || OutputMask::new(secrets.clone(), thoroughness, self.taken);
        let mask = self.mask.get_or_insert_with(new);
        let (mut offset, mut rest) = (self.taken, &mut *self.buffer);
        for gap in &self.gaps {
            let count = usize::try_from(gap.at - offset).unwrap_or(usize::MAX);
            let before;
            (before, rest) = rest.split_at_mut(count.min(rest.len()));
            mask.set_secrets(secrets, before, gap.at);
            offset = gap.at + gap.bytes;
        }
        mask.set_secrets(secrets, rest, self.arrived);
    }

    /// Returns how long bytes are still held back that may be the beginning of a secret.
    pub(super) fn held_for(&self, now: Instant) -> Option<Duration> {
        self.mask.as_ref()?.held_for(now)
    }

    /// Returns the offset of the next byte to read.
    pub(super) fn offset(&self) -> u64 {
        self.taken
    }

    /// Returns the offset of the next byte to arrive.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.gaps.is_empty()
    }

    /// Returns how many bytes of memory are allocated.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn memory_used(&self) -> usize {
        self.buffer.capacity() + self.gaps.capacity() * size_of::<Gap>()
    }

    /// Sets the offset of the first byte that arrives. Returns that of the first one that
    /// is returned. Fails if bytes have arrived.
    pub(super) fn begin_at(&mut self, offset: u64) -> Result<u64, WireError> {
        if self.arrived != 0 {
            return Err(WireError::Malformed);
        }
        self.taken = offset;
        self.arrived = offset;
        if let Some(mask) = &mut self.mask {
            mask.restart(offset);
        }
        Ok(offset.max(self.first))
    }

    /// Returns the position from which a new link continues. Its window is
    /// smaller by the bytes that were not read yet.
    pub(super) fn resume(&mut self) -> Position {
        let held = u32::try_from(self.buffer.len()).unwrap_or(WINDOW);
        let window = WINDOW.saturating_sub(held);
        self.window = ReceiveWindow::resumed(self.channel, WINDOW, window);
        self.ended = false;
        Position {
            offset: self.arrived,
            window,
        }
    }

    /// Adds bytes that were read from the link, up to the first one that the guest was not
    /// allowed to send.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let (allowed, violation) = self.count_arrived(bytes.len());
        self.buffer.extend_from_slice(&bytes[..allowed]);
        self.search(allowed);
        violation
    }

    /// Lets `read` write up to `max` bytes directly into the buffer, and keeps those that
    /// [`push`](Self::push) would.
    pub(super) fn fill<E: From<WireError>>(
        &mut self,
        max: usize,
        read: impl FnOnce(&mut bytes::buf::Limit<&mut BytesMut>) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.buffer.reserve(max);
        let held = self.buffer.len();
        let count = read(&mut bytes::BufMut::limit(&mut self.buffer, max))?;
        let (allowed, violation) = self.count_arrived(count);
        self.buffer.truncate(held + allowed);
        self.search(allowed);
        violation?;
        Ok(count)
    }

    /// Records that the guest has dropped bytes.
    pub(super) fn gap(&mut self, bytes: u64) -> Result<(), WireError> {
        if self.ended || bytes == 0 {
            return Err(WireError::Malformed);
        }
        let at = self.arrived;
        let arrived = at.checked_add(bytes).ok_or(WireError::Malformed)?;
        let last = self.last_bytes();
        if let Some(mask) = &mut self.mask {
            mask.release(&mut self.buffer[last..]);
            mask.restart(arrived);
        }
        self.arrived = arrived;
        if let Some(last) = self.gaps.back_mut()
            && last.at + last.bytes == at
        {
            last.bytes += bytes;
            return Ok(());
        }
        if self.gaps.len() >= MAX_GAPS {
            return Err(WireError::Malformed);
        }
        self.gaps.push_back(Gap { at, bytes });
        Ok(())
    }

    /// Records that no more bytes follow.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes up to `max` of the bytes, or the gap that comes first.
    pub(super) fn take(&mut self, max: usize, more: MayFollow) -> Option<InboxItem> {
        let mut count = self.buffer.len();
        if let Some(gap) = self.gaps.front() {
            if gap.at == self.taken {
                let bytes = gap.bytes;
                self.gaps.pop_front();
                self.taken += bytes;
                // Of a gap that begins before the first byte, the rest.
                let seen = bytes.min(self.taken.saturating_sub(self.first));
                return Some(match seen {
                    0 => InboxItem::Skipped(None),
                    _ => InboxItem::Gap(seen),
                });
            }
            count = count.min(usize::try_from(gap.at - self.taken).unwrap_or(usize::MAX));
        }
        let arrived = count;
        if let Some(mask) = &mut self.mask
            && self.gaps.is_empty()
        {
            match more {
                MayFollow::Yes if !self.ended => {
                    count -= mask.held_back(&mut self.buffer, Instant::now());
                }
                _ => mask.release(&mut self.buffer),
            }
        }
        let unwanted = self.first.saturating_sub(self.taken);
        let unwanted = usize::try_from(unwanted).unwrap_or(usize::MAX).min(arrived);
        let count = match unwanted {
            0 => count.min(max),
            _ => unwanted,
        };
        if count == 0 {
            return None;
        }
        let bytes = self.buffer.split_to(count).freeze();
        self.taken += count as u64;
        let consumed = u32::try_from(count).unwrap_or(u32::MAX);
        let credit = self.window.consumed(consumed).filter(|_| !self.ended);
        Some(match unwanted {
            0 => InboxItem::Bytes(bytes, credit),
            _ => InboxItem::Skipped(credit),
        })
    }

    /// Counts bytes that have arrived. Returns how many of them the guest was allowed to send,
    /// which does not depend on how they were split.
    fn count_arrived(&mut self, count: usize) -> (usize, Result<(), WireError>) {
        if self.ended && count > 0 {
            return (0, Err(WireError::Malformed));
        }
        let in_window = u64::from(self.window.free());
        let to_last_offset = u64::MAX - self.arrived;
        let (limit, violation) = match in_window <= to_last_offset {
            true => (in_window, WireError::Overrun(self.channel)),
            false => (to_last_offset, WireError::Malformed),
        };
        let allowed = u32::try_from(limit.min(count as u64)).unwrap_or(u32::MAX);
        self.arrived += u64::from(allowed);
        let counted = self.window.arrived(allowed);
        match allowed as usize {
            allowed if allowed < count => (allowed, Err(violation)),
            allowed => (allowed, counted),
        }
    }

    /// Looks for secrets in the last bytes, so many as have arrived now.
    fn search(&mut self, count: usize) {
        let last = self.last_bytes();
        if let Some(mask) = &mut self.mask {
            mask.arrived(&mut self.buffer[last..], count);
        }
    }

    /// Returns the index of the first byte after the last gap.
    fn last_bytes(&self) -> usize {
        let begin = self
            .gaps
            .back()
            .map_or(self.taken, |gap| gap.at + gap.bytes);
        let count = usize::try_from(self.arrived - begin).unwrap_or(usize::MAX);
        self.buffer.len().saturating_sub(count)
    }
}
