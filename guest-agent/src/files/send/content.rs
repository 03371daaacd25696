use rustix::{
    fd::BorrowedFd,
    fs::{SeekFrom, Stat, seek},
    io::{Errno, pread},
};
use vmcell_wire::{
    files::{
        TreeRecord,
        record::{self, HEADER},
    },
    limits::MAX_INLINE,
};

use crate::worker::{FileError, JobError, JobIo, JobResult};

/// How much of a large file is read at once: with its header it fills a frame.
const BLOCK: usize = 256 * 1024 - HEADER;

/// With less room for output, a block is read into a separate buffer.
const MIN_ROOM: usize = 4096;

/// Holes of smaller files are not kept.
const MIN_SPARSE: u64 = 4096;

/// How many bytes are sent of a file that claims to be empty, as those of the kernel
/// do.
const MAX_UNSIZED: u64 = 16 * 1024 * 1024;

/// Returns the length of a file.
pub(super) fn length(status: &Stat) -> u64 {
    u64::try_from(status.st_size).unwrap_or(0)
}

/// Reads a whole file. Returns `None` if it is too large for its record.
pub(super) fn read_small<'b>(
    file: BorrowedFd<'_>,
    status: &Stat,
    buffer: &'b mut [u8],
) -> Result<Option<&'b [u8]>, Errno> {
    let length = length(status);
    let Ok(expected) = usize::try_from(length) else {
        return Ok(None);
    };
    if expected > MAX_INLINE || (is_sparse(status) && length > MIN_SPARSE) {
        return Ok(None);
    }
    let mut filled = 0usize;
    loop {
        let rest = buffer.get_mut(filled..).unwrap_or_default();
        if rest.is_empty() {
            // The file has grown: there may be more.
            return Ok(None);
        }
        let count = match rustix::io::read(file, rest) {
            Err(Errno::INTR) => continue,
            count => count?,
        };
        filled = filled.saturating_add(count);
        // Bytes that are appended meanwhile are not sent.
        if count == 0 || filled == expected {
            return Ok(buffer.get(..filled));
        }
    }
}

/// Sends a file in parts, up to the length in its status.
pub(super) fn send_parts(
    io: &mut JobIo,
    file: BorrowedFd<'_>,
    status: &Stat,
    path: &[u8],
) -> JobResult<()> {
    let failed = |errno| JobError::from(FileError::errno(errno, "reading it").with_path(path));
    let end = match length(status) {
        0 => MAX_UNSIZED,
        length => length,
    };
    let is_sparse = is_sparse(status);
    let mut offset = 0u64;
    while offset < end {
        let mut until = end;
        if is_sparse {
            let data = next_data(file, offset, end).map_err(failed)?;
            if data > offset {
                let bytes = data.saturating_sub(offset);
                io.send_record(&TreeRecord::Hole { bytes })?;
                offset = data;
                continue;
            }
            until = data_end(file, offset, end);
        }
        match send_block(io, file, offset, until.saturating_sub(offset), failed)? {
            // The file became shorter meanwhile.
            0 => break,
            count => offset = offset.saturating_add(count),
        }
    }
    io.send_record(&TreeRecord::EndOfFile)
}

fn is_sparse(status: &Stat) -> bool {
    status.st_blocks.saturating_mul(512) < status.st_size
}

/// Returns the offset of the next bytes that are not in a hole.
fn next_data(file: BorrowedFd<'_>, offset: u64, end: u64) -> Result<u64, Errno> {
    match seek(file, SeekFrom::Data(offset)) {
        Ok(data) => Ok(data.clamp(offset, end)),
        // The rest is a hole.
        Err(Errno::NXIO) => Ok(end),
        // The file system does not support it.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(offset),
        Err(errno) => Err(errno),
    }
}

/// Returns the offset of the next hole. It is never `offset` itself, where another
/// process may have punched one meanwhile.
fn data_end(file: BorrowedFd<'_>, offset: u64, end: u64) -> u64 {
    match seek(file, SeekFrom::Hole(offset)) {
        Ok(hole) if hole > offset => hole.min(end),
        _ => end,
    }
}

/// Sends a block of at most `max` bytes, and returns its length.
fn send_block(
    io: &mut JobIo,
    file: BorrowedFd<'_>,
    offset: u64,
    max: u64,
    failed: impl Fn(Errno) -> JobError,
) -> JobResult<u64> {
    let max = usize::try_from(max).unwrap_or(BLOCK).min(BLOCK);
    let room = io.room()?;
    if room.len() < MIN_ROOM {
        let mut block = [0; MIN_ROOM];
        let max = max.min(MIN_ROOM);
        let block = block.get_mut(..max).unwrap_or_default();
        let count = read_at(file, block, offset).map_err(failed)?;
        if count > 0 {
            io.send(&record::raw_header(count)?)?;
            io.send(block.get(..count).unwrap_or_default())?;
        }
        return Ok(u64::try_from(count).unwrap_or(0));
    }
    let (header, block) = room.split_first_chunk_mut().ok_or(JobError::Cancelled)?;
    let max = max.min(block.len());
    let block = block.get_mut(..max).unwrap_or_default();
    let count = read_at(file, block, offset).map_err(failed)?;
    if count > 0 {
        *header = record::raw_header(count)?;
        io.wrote(count.saturating_add(HEADER));
    }
    Ok(u64::try_from(count).unwrap_or(0))
}

fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    loop {
        match pread(file, &mut *buffer, offset) {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}
