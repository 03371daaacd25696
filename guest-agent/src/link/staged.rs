use alloc::{vec, vec::Vec};

use vmcell_wire::Header;

/// Data frames whose payloads were read straight behind their headers. The
/// memory is used again and again.
pub(super) struct Staged {
    /// Empty until it is needed.
    buffer: Vec<u8>,
    written: usize,
    end: usize,
}

/// Two writes to a virtio-serial port.
const SIZE: usize = 64 * 1024;

impl Staged {
    pub(super) const fn new() -> Self {
        Self {
            buffer: Vec::new(),
            written: 0,
            end: 0,
        }
    }

    /// Where the next payload goes.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = vec![0; SIZE];
        }
        let start = self.end.saturating_add(Header::SIZE);
        self.buffer.get_mut(start..).unwrap_or_default()
    }

    /// The beginning of what was put into the room.
    pub(super) fn payload(&self, count: usize) -> &[u8] {
        let start = self.end.saturating_add(Header::SIZE);
        let payload = self.buffer.get(start..).unwrap_or_default();
        payload.get(..count).unwrap_or(payload)
    }

    /// Makes a frame of the first bytes in the room.
    pub(super) fn add(&mut self, header: [u8; Header::SIZE], count: usize) {
        let behind = self.buffer.get_mut(self.end..).unwrap_or_default();
        if let Some(place) = behind.first_chunk_mut() {
            *place = header;
            let length = Header::SIZE.saturating_add(count);
            self.end = self.end.saturating_add(length).min(SIZE);
        }
    }

    /// What is not written yet.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.written..self.end).unwrap_or_default()
    }

    /// Where the last frame ends.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.written = self.written.saturating_add(count);
        if self.written >= self.end {
            self.written = 0;
            self.end = 0;
        }
    }
}
