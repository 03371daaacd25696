use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::{
    buffer::spare_capacity,
    fs::{SeekFrom, Stat, seek},
    io::{Errno, pread},
};
use sha2::{Digest as _, Sha256};
use vmcell_wire::limits::MAX_INLINE;

use super::RecordSender;
use crate::transfer::{TreeError, error::display_path, meta::MetaBuf, meta::size_of};

/// An open file of the host.
///
/// It is sent with the length that it had when it was opened: data appended
/// meanwhile is not sent. If the file shrinks, only what is left is sent. The
/// stream stays valid either way.
pub(super) struct OpenFile {
    file: OwnedFd,
    size: u64,
    /// Whether it has holes.
    is_sparse: bool,
}

impl OpenFile {
    pub(super) fn new(file: OwnedFd, stat: &Stat) -> Self {
        let size = size_of(stat);
        // stat(2) counts blocks of 512 bytes on every file system.
        let allocated = u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512);
        Self {
            file,
            size,
            is_sparse: allocated < size,
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Sends the file. `buffer` is memory to reuse.
    pub(super) fn send(
        &self,
        name: &[u8],
        meta: &MetaBuf,
        path: &[u8],
        buffer: &mut Vec<u8>,
        sender: &mut RecordSender<'_>,
    ) -> Result<(), TreeError> {
        if self.size <= MAX_INLINE as u64 {
            self.read_whole(buffer, path)?;
            return sender.whole_file(name, meta, buffer, path);
        }
        sender.begin_file(name, meta, self.size, path)?;
        let mut offset = 0;
        while offset < self.size {
            let (start, end) = self.next_data(offset, path)?;
            sender.hole(start - offset, path)?;
            offset = start;
            while offset < end {
                let count = sender.file_data(end - offset, path, |piece, max| {
                    self.read_at(piece, max, offset, path)
                })?;
                if count == 0 {
                    return sender.end_file(path);
                }
                offset += count;
            }
        }
        sender.end_file(path)
    }

    /// Returns whether the content has this SHA-256.
    pub(super) fn has_digest(
        &self,
        digest: &[u8; 32],
        path: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<bool, TreeError> {
        let mut hasher = Sha256::new();
        let mut offset = 0;
        loop {
            buffer.clear();
            buffer.reserve(4 * MAX_INLINE);
            self.read_at(buffer, 4 * MAX_INLINE, offset, path)?;
            if buffer.is_empty() {
                return Ok(hasher.finalize()[..] == digest[..]);
            }
            hasher.update(&buffer);
            offset += buffer.len() as u64;
            if offset > self.size {
                // It has grown, so it differs.
                return Ok(false);
            }
        }
    }

    /// Returns the start and the end of the next data at or after `offset`.
    fn next_data(&self, offset: u64, path: &[u8]) -> Result<(u64, u64), TreeError> {
        if !self.is_sparse {
            return Ok((offset, self.size));
        }
        let failed = |errno: Errno| TreeError::read(display_path(path), errno);
        let start = match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => start.clamp(offset, self.size),
            // The rest is a hole.
            Err(Errno::NXIO) => return Ok((self.size, self.size)),
            // The file system does not report holes.
            Err(Errno::INVAL | Errno::NOTTY | Errno::NOTSUP) => return Ok((offset, self.size)),
            Err(errno) => return Err(failed(errno)),
        };
        match seek(&self.file, SeekFrom::Hole(start)) {
            Ok(end) if end > start => Ok((start, end.min(self.size))),
            // The file has just changed. Reading shows what is there.
            Ok(_) | Err(Errno::NXIO) => Ok((start, self.size)),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn read_whole(&self, buffer: &mut Vec<u8>, path: &[u8]) -> Result<(), TreeError> {
        buffer.clear();
        buffer.reserve(MAX_INLINE);
        // The caller checked that it fits into a record.
        let size = usize::try_from(self.size).unwrap_or(MAX_INLINE);
        while buffer.len() < size {
            let before = buffer.len();
            self.read_at(buffer, size - before, before as u64, path)?;
            buffer.truncate(size);
            if buffer.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Appends the bytes of one pread(2) to `buffer`, whose spare capacity must
    /// be at least `max`. May append more than `max`.
    fn read_at(
        &self,
        buffer: &mut Vec<u8>,
        max: usize,
        offset: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        debug_assert!(buffer.capacity() - buffer.len() >= max);
        loop {
            match pread(&self.file, spare_capacity(buffer), offset) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(TreeError::read(display_path(path), errno)),
            }
        }
    }
}
