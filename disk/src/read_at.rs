use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

/// Bytes at fixed places: an image, a part of one, a file.
///
/// Several threads may read at the same time.
pub trait ReadAt: Send + Sync {
    /// How many bytes there are. It must not change.
    fn size(&self) -> u64;

    /// Fills the buffer with what is at `offset`.
    ///
    /// # Errors
    ///
    /// If not all of the buffer can be filled. What it holds then is
    /// unspecified. Nothing is ever read beyond [`size`](Self::size).
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

/// The file as it is now. One that cannot be asked is empty.
impl ReadAt for File {
    fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

/// Bytes in memory.
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

/// Whether `length` bytes at `offset` are among `size`.
pub(super) fn check_range(offset: u64, length: usize, size: u64) -> io::Result<u64> {
    u64::try_from(length)
        .ok()
        .and_then(|length| offset.checked_add(length))
        .filter(|end| *end <= size)
        .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the image"))
}
