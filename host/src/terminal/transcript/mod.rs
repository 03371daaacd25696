//! The output of a terminal that this program keeps.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, ops::Range, time::Duration};

use bytes::{Bytes, BytesMut};

use super::size::TerminalSize;

/// The last bytes that a terminal printed, with their arrival times.
///
/// Offsets count from the beginning of the session and include lost bytes, so a
/// loss is visible as a gap between offsets.
///
/// ```text
/// offset:  0 ....... start ........ 900      950 ....... end
///          dropped   [chunk][chunk]    lost      [chunk]
/// ```
#[derive(Debug)]
pub(crate) struct Transcript {
    limit: usize,
    /// Not empty, in the order of their offsets.
    chunks: VecDeque<Chunk>,
    kept_bytes: usize,
    end: u64,
    sizes: VecDeque<Resized>,
}

/// Bytes that arrived at about the same time.
#[derive(Debug)]
struct Chunk {
    offset: u64,
    at: Duration,
    bytes: Vec<u8>,
}

/// A change of the terminal's size at this offset.
#[derive(Clone, Copy, Debug)]
struct Resized {
    offset: u64,
    at: Duration,
    size: TerminalSize,
}

/// A part of the output without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The offset of its first byte. If that is after the requested offset, the
    /// bytes between were dropped or lost.
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
}

/// An event of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Output(&'a [u8]),
    Resize(TerminalSize),
    /// This many bytes are missing here.
    Lost(u64),
}

/// Bytes that arrive within this time get the same time.
const TIME_RESOLUTION: Duration = Duration::from_millis(5);

const MAX_CHUNK: usize = 64 * 1024;

/// With more chunks, adjacent ones are merged, with one time.
const MAX_CHUNKS: usize = 16 * 1024;

/// With more changes of size, the oldest is dropped.
const MAX_SIZES: usize = 1024;

impl Transcript {
    /// Creates a transcript that keeps at most `limit` bytes. The first byte has
    /// this offset.
    pub(crate) fn new(limit: usize, offset: u64) -> Self {
        Self {
            limit,
            chunks: VecDeque::new(),
            kept_bytes: 0,
            end: offset,
            sizes: VecDeque::new(),
        }
    }

    /// Returns the offset of the oldest byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.chunks.front().map_or(self.end, |chunk| chunk.offset)
    }

    /// Returns the offset of the next byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends output. `at` is the time since the beginning of the session.
    pub(crate) fn push(&mut self, bytes: &[u8], at: Duration) {
        let max_bytes = (self.limit / 16).clamp(1, MAX_CHUNK);
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.last_chunk_room(max_bytes, at);
            let (now, later) = rest.split_at(room.min(rest.len()));
            rest = later;
            if let Some(chunk) = self.chunks.back_mut() {
                chunk.bytes.extend_from_slice(now);
                self.kept_bytes += now.len();
                self.end = self.end.saturating_add(length(now));
            }
            self.trim();
        }
    }

    /// Overwrites a range of offsets, where its bytes are kept.
    pub(crate) fn mask(&mut self, range: Range<u64>, mask: u8) {
        let first = self
            .chunks
            .partition_point(|chunk| chunk.end() <= range.start);
        for chunk in self.chunks.range_mut(first..) {
            if chunk.offset >= range.end {
                break;
            }
            let index = |at: u64| usize::try_from(at.saturating_sub(chunk.offset));
            let start = index(range.start).unwrap_or(usize::MAX);
            let end = index(range.end).unwrap_or(usize::MAX);
            let end = end.min(chunk.bytes.len());
            if let Some(bytes) = chunk.bytes.get_mut(start..end) {
                bytes.fill(mask);
            }
        }
    }

    /// Records that bytes were lost.
    pub(crate) fn gap(&mut self, lost: u64) {
        self.end = self.end.saturating_add(lost);
    }

    /// Records a change of size.
    pub(crate) fn resized(&mut self, size: TerminalSize, at: Duration) {
        let offset = self.end;
        self.sizes.push_back(Resized { offset, at, size });
        if self.sizes.len() > MAX_SIZES {
            self.sizes.pop_front();
        }
    }

    /// Returns at most `max_bytes` from an offset on, or from the next byte that is
    /// kept, up to the next gap.
    pub(crate) fn read(&self, cursor: u64, max_bytes: usize) -> Piece {
        let first = self.chunks.partition_point(|chunk| chunk.end() <= cursor);
        let Some(chunk) = self.chunks.get(first) else {
            return Piece {
                offset: self.end,
                bytes: Bytes::new(),
            };
        };
        let offset = cursor.max(chunk.offset);
        let mut bytes = BytesMut::new();
        let mut next = offset;
        for chunk in self.chunks.range(first..) {
            if chunk.offset > next || bytes.len() == max_bytes {
                break;
            }
            let skipped = usize::try_from(next - chunk.offset).unwrap_or(usize::MAX);
            let rest = chunk.bytes.get(skipped..).unwrap_or_default();
            bytes.extend_from_slice(&rest[..rest.len().min(max_bytes - bytes.len())]);
            next = chunk.end();
        }
        let bytes = bytes.freeze();
        Piece { offset, bytes }
    }

    /// Returns all events that are kept, with their times. The first one is the
    /// size of the terminal at the start, if it is known.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Duration, Event<'_>)> {
        let before = self
            .sizes
            .partition_point(|resized| resized.offset <= self.start());
        let mut sizes = self.sizes.range(before.saturating_sub(1)..).peekable();
        let mut chunks = self.chunks.iter().peekable();
        let mut next = self.start();
        std::iter::from_fn(move || {
            let reached = chunks.peek().map_or(u64::MAX, |chunk| chunk.offset);
            if let Some(resized) = sizes.next_if(|resized| resized.offset <= reached) {
                return Some((resized.at, Event::Resize(resized.size)));
            }
            let chunk = chunks.peek()?;
            if chunk.offset > next {
                let lost = chunk.offset - next;
                next = chunk.offset;
                return Some((chunk.at, Event::Lost(lost)));
            }
            next = chunk.end();
            let chunk = chunks.next()?;
            Some((chunk.at, Event::Output(&chunk.bytes)))
        })
    }

    /// Returns how many bytes fit into the last chunk. Adds a chunk if the bytes
    /// arrive later than those in it, or after a gap.
    fn last_chunk_room(&mut self, max_bytes: usize, at: Duration) -> usize {
        let resized = self.sizes.back().map(|resized| resized.offset);
        if let Some(chunk) = self.chunks.back_mut() {
            let same = chunk.end() == self.end
                && at.saturating_sub(chunk.at) < TIME_RESOLUTION
                && resized < Some(self.end);
            let room = max_bytes.saturating_sub(chunk.bytes.len());
            if same && room > 0 {
                return room;
            }
            chunk.bytes.shrink_to_fit();
        }
        let offset = self.end;
        let bytes = Vec::new();
        self.chunks.push_back(Chunk { offset, at, bytes });
        max_bytes
    }

    /// Drops the oldest bytes, chunks and sizes beyond their limits.
    fn trim(&mut self) {
        while self.kept_bytes > self.limit {
            self.drop_oldest();
        }
        if self.chunks.len() > MAX_CHUNKS {
            self.merge();
            // Gaps prevent merging. Dropping many at once makes this rare.
            while self.chunks.len() > MAX_CHUNKS / 4 * 3 {
                self.drop_oldest();
            }
        }
        let start = self.start();
        // The last size before the start is still needed.
        while self.sizes.get(1).is_some_and(|next| next.offset <= start) {
            self.sizes.pop_front();
        }
    }

    fn drop_oldest(&mut self) {
        let chunk = self.chunks.pop_front();
        self.kept_bytes -= chunk.map_or(self.kept_bytes, |chunk| chunk.bytes.len());
    }

    /// Merges every two chunks that have no gap between them.
    fn merge(&mut self) {
        let mut merged: VecDeque<Chunk> = VecDeque::new();
        let mut pair = false;
        for chunk in self.chunks.drain(..) {
            match merged.back_mut() {
                Some(last)
                    if pair
                        && last.end() == chunk.offset
                        && last.bytes.len() + chunk.bytes.len() <= MAX_CHUNK =>
                {
                    last.bytes.extend_from_slice(&chunk.bytes);
                    last.bytes.shrink_to_fit();
                    pair = false;
                }
                _ => {
                    merged.push_back(chunk);
                    pair = true;
                }
            }
        }
        self.chunks = merged;
    }
}

impl Chunk {
    fn end(&self) -> u64 {
        self.offset.saturating_add(length(&self.bytes))
    }
}

impl Piece {
    /// Returns the offset after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(length(&self.bytes))
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
