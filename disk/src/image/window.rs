use std::io;

use crate::read_at::{ReadAt, check_range};

/// A part of another source of bytes, for example a partition of a disk.
#[derive(Clone, Debug)]
pub struct Window<T> {
    whole: T,
    start: u64,
    length: u64,
}

impl<T: ReadAt> Window<T> {
    /// Creates a window of `length` bytes from `start` on. What lies beyond the
    /// end of `whole` is left out.
    pub fn new(whole: T, start: u64, length: u64) -> Self {
        let start = start.min(whole.size());
        let length = length.min(whole.size() - start);
        Self {
            whole,
            start,
            length,
        }
    }

    /// Creates a window of everything.
    pub fn whole(whole: T) -> Self {
        let length = whole.size();
        Self::new(whole, 0, length)
    }

    /// Returns the offset of the window in the whole.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the whole.
    pub fn get_ref(&self) -> &T {
        &self.whole
    }
}

impl<T: ReadAt> ReadAt for Window<T> {
    fn size(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        check_range(offset, buffer.len(), self.length)?;
        self.whole.read_at(self.start + offset, buffer)
    }
}
