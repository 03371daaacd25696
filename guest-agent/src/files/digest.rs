use alloc::vec::Vec;

use rustix::{fd::BorrowedFd, io::Errno};
use sha2::{Digest, Sha256};

use crate::worker::{FileError, JobIo, JobResult};

/// Computes the SHA-256 of files, one after the other.
pub(crate) struct Digester {
    buffer: Vec<u8>,
}

const CHUNK: usize = 64 * 1024;

impl Digester {
    pub(crate) fn new() -> Self {
        Self {
            buffer: alloc::vec![0; CHUNK],
        }
    }

    /// Returns the digest of a regular file's bytes.
    pub(crate) fn digest(&mut self, io: &JobIo, file: BorrowedFd<'_>) -> JobResult<[u8; 32]> {
        let mut state = Sha256::new();
        let mut offset = 0u64;
        loop {
            io.check_cancelled()?;
            let count = match rustix::io::pread(file, &mut self.buffer, offset) {
                Ok(0) => return Ok(state.finalize().into()),
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(FileError::errno(errno, "reading it").into()),
            };
            state.update(self.buffer.get(..count).unwrap_or_default());
            offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }
}

/// Returns the digest of a few bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
