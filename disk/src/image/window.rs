use std::io;

use crate::read_at::{ReadAt, check_range};

/// A part of something larger: a partition of a disk.
#[derive(Clone, Debug)]
pub struct Window<T> {
    whole: T,
    start: u64,
    length: u64,
}

impl<T: ReadAt> Window<T> {
    /// `length` bytes from `start` on, or as many of them as there are.
    pub fn new(whole: T, start: u64, length: u64) -> Self {
        let start = start.min(whole.size());
        let length = length.min(whole.size() - start);
        Self {
            whole,
            start,
            length,
        }
    }

    /// All of it.
    pub fn whole(whole: T) -> Self {
        let length = whole.size();
        Self::new(whole, 0, length)
    }

    /// Where it begins in the larger thing.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The larger thing.
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
