use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::{Errno, IoSliceMut, ReadWriteFlags},
};

use super::{root::Root, target::open_file};
use crate::worker::{FileError, JobIo, JobResult};

/// How much is read at once.
const CHUNK: usize = 128 * 1024;

/// How much is read at once with direct I/O, where each call waits for the disk.
const DIRECT_CHUNK: usize = 1024 * 1024;

/// From this size on, direct I/O is faster.
const DIRECT_IO_THRESHOLD: u64 = 4 * 1024 * 1024;

/// The alignment of direct I/O: of its length, file offset and memory address.
const BLOCK: usize = 4096;
const BLOCK_64: u64 = 4096;

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    offset: u64,
    length: u64,
) -> JobResult<()> {
    let (file, status) = open_file(root, path, OFlags::RDONLY)?;
    let end = offset.saturating_add(length);
    let size = u64::try_from(status.st_size).unwrap_or(0).min(end);
    let mut offset = offset;
    if size.saturating_sub(offset) >= DIRECT_IO_THRESHOLD && offset.is_multiple_of(BLOCK_64) {
        // The end of the file may be a partial block.
        let whole = size.saturating_sub(size.rem_euclid(BLOCK_64));
        offset = read_directly(io, file.as_fd(), offset, whole)?;
    }
    while offset < end {
        let room = io.room()?;
        let count = room.len().min(CHUNK).min(clamp(end.saturating_sub(offset)));
        let count = read(
            file.as_fd(),
            room.get_mut(..count).unwrap_or_default(),
            offset,
        )?;
        if count == 0 {
            break;
        }
        io.wrote(count);
        offset = advance(offset, count);
    }
    Ok(())
}

/// Reads with direct I/O into the output, unless the file is cached or does not
/// support it. Returns the offset that it reached.
fn read_directly(
    io: &mut JobIo,
    file: BorrowedFd<'_>,
    mut offset: u64,
    end: u64,
) -> JobResult<u64> {
    if is_cached(io, file, offset)? || !set_direct_io(file, true) {
        return Ok(offset);
    }
    while offset < end {
        let room = io.room_for(DIRECT_CHUNK / 2)?;
        let count = room.len().min(DIRECT_CHUNK);
        let count = count.min(clamp(end.saturating_sub(offset)));
        let count = count.saturating_sub(count.rem_euclid(BLOCK));
        let room = room.get_mut(..count).unwrap_or_default();
        match rustix::io::pread(file, room, offset) {
            Ok(count) if count > 0 => {
                io.wrote(count);
                offset = advance(offset, count);
                if count.is_multiple_of(BLOCK) {
                    continue;
                }
            }
            Err(Errno::INTR) => continue,
            // A real error comes again without direct I/O.
            _ => {}
        }
        break;
    }
    set_direct_io(file, false);
    Ok(offset)
}

/// Returns whether the block at `offset` is in the kernel's cache.
fn is_cached(io: &mut JobIo, file: BorrowedFd<'_>, offset: u64) -> JobResult<bool> {
    let room = io.room_for(BLOCK)?;
    let block = room.get_mut(..BLOCK).unwrap_or_default();
    let mut blocks = [IoSliceMut::new(block)];
    let outcome = rustix::io::preadv2(file, &mut blocks, offset, ReadWriteFlags::NOWAIT);
    Ok(!matches!(outcome, Err(Errno::AGAIN)))
}

/// Switches direct I/O on or off. Returns whether the file system supports it.
pub(super) fn set_direct_io(file: BorrowedFd<'_>, direct: bool) -> bool {
    fcntl_getfl(file).is_ok_and(|mut flags| {
        flags.set(OFlags::DIRECT, direct);
        fcntl_setfl(file, flags).is_ok()
    })
}

fn read(file: BorrowedFd<'_>, room: &mut [u8], offset: u64) -> JobResult<usize> {
    loop {
        match rustix::io::pread(file, &mut *room, offset) {
            Err(Errno::INTR) => {}
            outcome => {
                return outcome.map_err(|errno| FileError::errno(errno, "reading it").into());
            }
        }
    }
}

fn clamp(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn advance(offset: u64, count: usize) -> u64 {
    offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX))
}
