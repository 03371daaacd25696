use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::{
    buffer::spare_capacity,
    fs::{SeekFrom, Stat, seek},
    io::{Errno, pread},
};
use sha2::{Digest as _, Sha256};
use vmcell_wire::limits::MAX_INLINE;

use super::Outgoing;
use crate::transfer::{TreeError, error::shown, meta::MetaBuf, meta::size_of};

/// A file of the host that is open for reading.
///
/// It is as long as it was when it was opened: what is appended meanwhile is
/// left out, and if it shrinks, what is left of it is sent. The stream keeps
/// its form either way.
pub(super) struct OpenFile {
    file: OwnedFd,
    size: u64,
    /// Whether parts of it take no room.
    is_sparse: bool,
}

impl OpenFile {
    pub(super) fn new(file: OwnedFd, stat: &Stat) -> Self {
        let size = size_of(stat);
        // stat(2) counts blocks of 512 bytes, whatever the file system has.
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

    /// Sends the file; `buffer` is memory that is used again.
    pub(super) fn send(
        &self,
        name: &[u8],
        meta: &MetaBuf,
        path: &[u8],
        buffer: &mut Vec<u8>,
        outgoing: &mut Outgoing<'_>,
    ) -> Result<(), TreeError> {
        if self.size <= MAX_INLINE as u64 {
            self.read_whole(buffer, path)?;
            return outgoing.whole_file(name, meta, buffer, path);
        }
        outgoing.begin_file(name, meta, self.size, path)?;
        let mut offset = 0;
        while offset < self.size {
            let (start, end) = self.next_data(offset, path)?;
            outgoing.hole(start - offset, path)?;
            offset = start;
            while offset < end {
                let count = outgoing.file_data(end - offset, path, |piece, most| {
                    self.read_at(piece, most, offset, path)
                })?;
                if count == 0 {
                    return outgoing.end_file(path);
                }
                offset += count;
            }
        }
        outgoing.end_file(path)
    }

    /// Whether its bytes have this SHA-256.
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
                // It has grown, so it is being changed.
                return Ok(false);
            }
        }
    }

    /// Where the next bytes are that take room, from `offset` on.
    fn next_data(&self, offset: u64, path: &[u8]) -> Result<(u64, u64), TreeError> {
        if !self.is_sparse {
            return Ok((offset, self.size));
        }
        let failed = |errno: Errno| TreeError::read(shown(path), errno);
        let start = match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => start.clamp(offset, self.size),
            // The rest is a hole.
            Err(Errno::NXIO) => return Ok((self.size, self.size)),
            // Its file system knows of no holes.
            Err(Errno::INVAL) => return Ok((offset, self.size)),
            Err(errno) => return Err(failed(errno)),
        };
        match seek(&self.file, SeekFrom::Hole(start)) {
            Ok(end) if end > start => Ok((start, end.min(self.size))),
            // It changes just now. Reading tells what is there.
            Ok(_) | Err(Errno::NXIO) => Ok((start, self.size)),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn read_whole(&self, buffer: &mut Vec<u8>, path: &[u8]) -> Result<(), TreeError> {
        buffer.clear();
        buffer.reserve(MAX_INLINE);
        // It was found to be no larger than a record.
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

    /// Appends bytes to what has room for them: about as many as asked for, or
    /// more.
    fn read_at(
        &self,
        buffer: &mut Vec<u8>,
        most: usize,
        offset: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        debug_assert!(buffer.capacity() - buffer.len() >= most);
        loop {
            match pread(&self.file, spare_capacity(buffer), offset) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(TreeError::read(shown(path), errno)),
            }
        }
    }
}
