use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

/// A source of bytes with random access: an image, a part of an image, a file
/// or a buffer.
///
/// Must allow reads from several threads at once.
pub trait ReadAt: Send + Sync {
    /// Returns the size in bytes. It must not change.
    fn size(&self) -> u64;

    /// Fills the whole buffer with the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// If the buffer cannot be filled, for example because the range reaches
    /// beyond [`size`](Self::size). The buffer's contents are then unspecified.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buffer)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buffer)
    }
}

/// Reports a size of 0 if the file's metadata cannot be read.
impl ReadAt for File {
    fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        check_range(offset, buffer.len(), self.size())?;
        let bytes = self.get(offset as usize..).unwrap_or_default();
        buffer.copy_from_slice(bytes.get(..buffer.len()).unwrap_or_default());
        Ok(())
    }
}

/// Fails unless `offset + length` is at most `size`. Returns that end offset.
pub(super) fn check_range(offset: u64, length: usize, size: u64) -> io::Result<u64> {
    u64::try_from(length)
        .ok()
        .and_then(|length| offset.checked_add(length))
        .filter(|end| *end <= size)
        .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the image"))
}
