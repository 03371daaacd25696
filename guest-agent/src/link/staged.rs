use alloc::{vec, vec::Vec};

use vmcell_wire::Header;
use zeroize::Zeroize as _;

/// A reusable buffer of data frames, whose payloads are read directly behind
/// their headers.
pub(super) struct StagedFrames {
    /// Allocated on first use.
    buffer: Vec<u8>,
    written: usize,
    end: usize,
}

/// The size of the buffer: two writes to a virtio-serial port.
const SIZE: usize = 64 * 1024;

impl StagedFrames {
    pub(super) const fn new() -> Self {
        Self {
            buffer: Vec::new(),
            written: 0,
            end: 0,
        }
    }

    /// Returns the space for the next payload.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = vec![0; SIZE];
        }
        let start = self.end.saturating_add(Header::SIZE);
        self.buffer.get_mut(start..).unwrap_or_default()
    }

    /// Returns the first `count` bytes in the space for the next payload.
    pub(super) fn payload(&mut self, count: usize) -> &mut [u8] {
        let start = self.end.saturating_add(Header::SIZE);
        let end = start.saturating_add(count);
        self.buffer.get_mut(start..end).unwrap_or_default()
    }

    /// Adds a frame whose payload is the first `count` bytes in that space.
    pub(super) fn add(&mut self, header: [u8; Header::SIZE], count: usize) {
        let behind = self.buffer.get_mut(self.end..).unwrap_or_default();
        if let Some(place) = behind.first_chunk_mut() {
            *place = header;
            let length = Header::SIZE.saturating_add(count);
            self.end = self.end.saturating_add(length).min(SIZE);
        }
    }

    /// Returns the bytes that are not written yet.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.written..self.end).unwrap_or_default()
    }

    /// Returns the end of the last frame.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.written = self.written.saturating_add(count);
        if self.written >= self.end {
            // Programs may have sent a secret.
            self.buffer
                .get_mut(..self.end)
                .unwrap_or_default()
                .zeroize();
            self.written = 0;
            self.end = 0;
        }
    }
}
