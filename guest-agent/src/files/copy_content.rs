use alloc::vec::Vec;

use rustix::{
    fd::BorrowedFd,
    fs::{SeekFrom, Stat, copy_file_range, ftruncate, ioctl_ficlone, seek},
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::write::write_some;
use crate::worker::{FileError, JobError, JobIo, JobResult};

/// How much the kernel copies at once; in between, the job can be cancelled.
const MAX_AT_ONCE: u64 = 16 * 1024 * 1024;

/// The buffer size for copying without the kernel's help.
const CHUNK: usize = 64 * 1024;

/// Copies the bytes of a file to a new one. Blocks are shared if the file system
/// supports that; holes stay holes.
pub(super) fn copy_content(
    io: &JobIo,
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    status: &Stat,
) -> JobResult<()> {
    let size = u64::try_from(status.st_size).unwrap_or(0);
    if size == 0 || ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let mut offset = 0;
    while offset < size {
        let data = match seek(from, SeekFrom::Data(offset)) {
            Ok(data) => data.min(size),
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            Err(_) => offset,
        };
        let hole = seek(from, SeekFrom::Hole(data)).map_or(size, |hole| hole.min(size));
        copy_range(io, from, to, data, hole)?;
        offset = hole.max(offset.saturating_add(1));
    }
    ftruncate(to, size).map_err(copy_failed)
}

/// Copies the bytes from `start` to `end`, or to the end of the file if it has
/// become shorter.
fn copy_range(
    io: &JobIo,
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    start: u64,
    end: u64,
) -> JobResult<()> {
    let (mut read, mut written) = (start, start);
    while written < end {
        io.check_cancelled()?;
        let count = end.saturating_sub(written).min(MAX_AT_ONCE);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match copy_file_range(from, Some(&mut read), to, Some(&mut written), count) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return copy_with_buffer(io, from, to, written, end);
            }
            Err(errno) => return Err(copy_failed(errno)),
        }
    }
    Ok(())
}

fn copy_with_buffer(
    io: &JobIo,
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    mut offset: u64,
    end: u64,
) -> JobResult<()> {
    let mut buffer: Vec<u8> = alloc::vec![0; CHUNK];
    while offset < end {
        io.check_cancelled()?;
        let count = usize::try_from(end.saturating_sub(offset)).unwrap_or(CHUNK);
        let piece = buffer.get_mut(..count.min(CHUNK)).unwrap_or_default();
        let count = match rustix::io::pread(from, piece, offset) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(copy_failed(errno)),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        let count = write_some(to, piece, Some(offset))?;
        offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
    Ok(())
}

#[cold]
pub(super) fn copy_failed(errno: Errno) -> JobError {
    let failure = match errno {
        // A path that leaves its root was rejected before.
        Errno::XDEV => FileError::new(FailureKind::Unsupported, "copying between file systems"),
        errno => FileError::errno(errno, "copying it"),
    };
    failure.into()
}
