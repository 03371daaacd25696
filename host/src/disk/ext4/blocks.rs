use std::{fs::File, io, os::unix::fs::FileExt};

/// The image beneath a file system: a raw file, a chain of layers, a partition
/// of one of these.
///
/// Several threads may read at the same time.
pub trait Blocks: Send + Sync {
    /// How many bytes it has. It must not change.
    fn size(&self) -> u64;

    /// Fills the whole buffer from the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// What the operating system said, or `UnexpectedEof` if the image ends
    /// before the buffer is full. The buffer then holds anything.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A raw image. A block device has no size here: its length reads as zero.
impl Blocks for File {
    fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

/// An image in memory.
impl Blocks for Vec<u8> {
    fn size(&self) -> u64 {
        super::fields::wide(self.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = super::fields::narrow(offset);
        let bytes = self
            .get(start..)
            .and_then(|rest| rest.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
