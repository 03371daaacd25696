use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::{Errno, IoSliceMut, ReadWriteFlags},
};

use super::{root::Root, target::open_file};
use crate::worker::{FileError, JobIo, JobResult};

/// What is read at once.
const CHUNK: usize = 128 * 1024;

/// The same past the kernel's cache, where each call waits for the disk.
const DIRECT_CHUNK: usize = 1024 * 1024;

/// From so many bytes on it pays to read past the kernel's cache.
const DIRECT_IO_THRESHOLD: u64 = 4 * 1024 * 1024;

/// What is read past the cache is a multiple of this, and so is its place in
/// the file and in memory.
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
        // The tail of the file has no whole blocks.
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

/// Reads from the disk straight into what goes to the host, unless the file is
/// in memory already or cannot be read this way. Answers how far it came.
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
            // An error comes again without our doing, if it is one.
            _ => {}
        }
        break;
    }
    set_direct_io(file, false);
    Ok(offset)
}

/// Whether the first block can be had without the disk.
fn is_cached(io: &mut JobIo, file: BorrowedFd<'_>, offset: u64) -> JobResult<bool> {
    let room = io.room_for(BLOCK)?;
    let block = room.get_mut(..BLOCK).unwrap_or_default();
    let mut blocks = [IoSliceMut::new(block)];
    let outcome = rustix::io::preadv2(file, &mut blocks, offset, ReadWriteFlags::NOWAIT);
    Ok(!matches!(outcome, Err(Errno::AGAIN)))
}

/// Answers whether the file system can do it.
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
