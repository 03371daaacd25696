use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        AtFlags, FallocateFlags, Mode, OFlags, fallocate, fchmod, fstat, fsync, ftruncate, openat,
        unlinkat,
    },
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::{Precondition, Write, WriteMode},
};

use super::{
    digest::Digester,
    entry,
    owner::{Ids, NewOwner},
    read::set_direct_io,
    root::{Root, resolve_error},
    target::Target,
    temporary::TemporaryFile,
};
use crate::worker::{FileError, JobError, JobIo, JobResult};

/// How much is written at once.
const CHUNK: usize = 512 * 1024;

/// How much input must have arrived before it is written, unless the input ends.
const MIN_WRITE: usize = 128 * 1024;

/// From this size on, direct I/O is used.
const DIRECT_IO_THRESHOLD: u64 = 4 * 1024 * 1024;

/// The alignment of direct I/O.
const BLOCK: usize = 4096;

/// From this size on, space is allocated before the bytes arrive.
const PREALLOCATE_THRESHOLD: u64 = 1024 * 1024;

pub(super) const NEW_MODE: u32 = 0o644;

pub(super) fn perform(io: &mut JobIo, root: &Root, write: &Write<'_>) -> JobResult<()> {
    let owner = NewOwner::find(write.owner)?;
    let target = Target::find(root, write.path, &owner)?;
    target.must_be_file()?;
    if write.precondition == Precondition::Absent && target.status.is_some() {
        return Err(conflict("there is such a file already"));
    }
    match write.write_mode {
        WriteMode::Replace => replace(io, write, &target, &owner),
        WriteMode::Append => in_place(io, write, &target, &owner, None),
        WriteMode::At(offset) => in_place(io, write, &target, &owner, Some(offset)),
    }
}

fn replace(io: &mut JobIo, write: &Write<'_>, target: &Target, owner: &NewOwner) -> JobResult<()> {
    let mut temporary = TemporaryFile::new(target.directory.as_fd()).map_err(create_failed)?;
    let file = temporary.file();
    let mut length = 0;
    if let Some(size) = write.size.filter(|size| *size >= DIRECT_IO_THRESHOLD)
        && preallocate_with_size(file, size)?
    {
        write_directly(io, file, &mut length)?;
    } else {
        preallocate(file, 0, write.size)?;
    }
    write_input(io, file, Some(0), &mut length)?;
    if write.size.is_some_and(|size| size > length) {
        ftruncate(file, length).map_err(write_failed)?;
    }
    let mode = match (write.mode, &target.status) {
        (Some(mode), _) => u32::from(mode),
        (None, Some(status)) => status.st_mode & 0o7777,
        (None, None) => NEW_MODE,
    };
    let new_owner = match &target.status {
        Some(status) => {
            let ids = owner.owner_for_replaced().unwrap_or(Ids::of(status));
            let current = Ids::of(&fstat(file).map_err(create_failed)?);
            (ids != current).then_some(ids)
        }
        None => owner
            .owner_for_new_in(&target.directory)
            .map_err(create_failed)?,
    };
    apply_metadata(file, new_owner, Some(mode))?;
    if write.sync {
        fsync(file).map_err(write_failed)?;
    }
    check_expected(io, target, write.precondition)?;
    let published = match target.status {
        Some(_) => temporary.replace(&target.name),
        None => match temporary.publish(&target.name) {
            Err(Errno::EXIST) if write.precondition == Precondition::Anything => {
                temporary.replace(&target.name)
            }
            outcome => outcome,
        },
    };
    published.map_err(create_failed)?;
    if write.sync {
        sync_directory(target)?;
    }
    entry::answer(io, temporary.file())
}

/// Writes into the existing file: at `offset`, or at its end.
fn in_place(
    io: &mut JobIo,
    write: &Write<'_>,
    target: &Target,
    owner: &NewOwner,
    offset: Option<u64>,
) -> JobResult<()> {
    check_expected(io, target, write.precondition)?;
    let mut flags = OFlags::RDWR;
    flags.set(OFlags::APPEND, offset.is_none());
    let mut new = RemoveOnDrop::default();
    let file = if target.status.is_some() {
        target.open(flags)?
    } else {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(NEW_MODE);
        let file = openat(&target.directory, &*target.name, flags, mode).map_err(create_failed)?;
        new.0 = Some(target);
        file
    };
    let new_owner = match target.status {
        Some(_) => owner.owner_for_replaced(),
        None => owner
            .owner_for_new_in(&target.directory)
            .map_err(create_failed)?,
    };
    let before = length(&file)?;
    let start = offset.unwrap_or(before);
    preallocate(file.as_fd(), start, write.size)?;
    let mut written = 0;
    if let Err(error) = write_input(io, file.as_fd(), offset, &mut written) {
        let current = before.saturating_add(written);
        if offset.is_none() && length(&file).is_ok_and(|length| length == current) {
            // Removes what was appended. If this fails too, the first failure is
            // reported.
            let _ = ftruncate(&file, before);
        }
        return Err(error);
    }
    apply_metadata(file.as_fd(), new_owner, write.mode.map(u32::from))?;
    if write.sync {
        fsync(&file).map_err(write_failed)?;
        if target.status.is_none() {
            sync_directory(target)?;
        }
    }
    new.0 = None;
    entry::answer(io, file.as_fd())
}

/// Removes a new file when it is dropped, unless it was set to `None`.
#[derive(Default)]
struct RemoveOnDrop<'t>(Option<&'t Target>);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(target) = self.0 {
            // Another process may have removed it.
            let _ = unlinkat(&target.directory, &*target.name, AtFlags::empty());
        }
    }
}

fn check_expected(io: &JobIo, target: &Target, precondition: Precondition) -> JobResult<()> {
    let Precondition::Digest(expected) = precondition else {
        return Ok(());
    };
    if target.status.is_none() {
        return Err(conflict("there is no such file"));
    }
    let file = target.open(OFlags::RDONLY)?;
    let status = fstat(&file).map_err(resolve_error)?;
    let digest = Digester::new().digest(io, file.as_fd())?;
    if digest != expected || !target.is_unchanged(&status) {
        return Err(conflict("the file is not as expected"));
    }
    Ok(())
}

/// Allocates space, so that a full disk is detected before anything has changed.
fn preallocate(file: BorrowedFd<'_>, offset: u64, size: Option<u64>) -> JobResult<()> {
    let Some(size) = size.filter(|size| *size >= PREALLOCATE_THRESHOLD) else {
        return Ok(());
    };
    match fallocate(file, FallocateFlags::KEEP_SIZE, offset, size) {
        // Not every file system supports it.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        outcome => outcome.map_err(write_failed),
    }
}

/// Allocates space for a file of this size, and sets its length. Returns whether the
/// file system supports that.
fn preallocate_with_size(file: BorrowedFd<'_>, size: u64) -> JobResult<bool> {
    match fallocate(file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(write_failed(errno)),
    }
}

/// Writes whole blocks of the input with direct I/O, and adds them to `written`. The
/// kernel's cache would copy them, and block other processes when it writes them.
fn write_directly(io: &mut JobIo, file: BorrowedFd<'_>, written: &mut u64) -> JobResult<()> {
    if !set_direct_io(file, true) {
        return Ok(());
    }
    loop {
        let piece = io.peek_input(MIN_WRITE)?;
        let whole = piece.len().min(CHUNK);
        let whole = whole.saturating_sub(whole.rem_euclid(BLOCK));
        let piece = piece.get(..whole).unwrap_or_default();
        if piece.is_empty() {
            break;
        }
        match rustix::io::pwrite(file, piece, *written) {
            Ok(count) if count > 0 => {
                *written = written.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                io.consume(count);
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
    Ok(())
}

/// Writes the rest of the input at `offset`, or at the end, and adds it to `written`.
fn write_input(
    io: &mut JobIo,
    file: BorrowedFd<'_>,
    offset: Option<u64>,
    written: &mut u64,
) -> JobResult<()> {
    loop {
        let piece = io.peek_input(MIN_WRITE)?;
        let piece = piece.get(..CHUNK).unwrap_or(piece);
        if piece.is_empty() {
            return Ok(());
        }
        let offset = offset.map(|start| start.saturating_add(*written));
        let count = write_some(file, piece, offset)?;
        *written = written.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        io.consume(count);
    }
}

/// Writes at least one byte, at `offset` or at the end.
pub(super) fn write_some(
    file: BorrowedFd<'_>,
    bytes: &[u8],
    offset: Option<u64>,
) -> JobResult<usize> {
    loop {
        let outcome = match offset {
            Some(offset) => rustix::io::pwrite(file, bytes, offset),
            None => rustix::io::write(file, bytes),
        };
        match outcome {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(write_failed(Errno::IO)),
            outcome => return outcome.map_err(write_failed),
        }
    }
}

/// Sets the owner, and then the permissions.
pub(super) fn apply_metadata(
    file: BorrowedFd<'_>,
    new_owner: Option<Ids>,
    mode: Option<u32>,
) -> JobResult<()> {
    if let Some(ids) = new_owner {
        ids.chown(file)
            .map_err(|errno| FileError::errno(errno, "setting its owner"))?;
    }
    if let Some(mode) = mode {
        fchmod(file, Mode::from_raw_mode(mode))
            .map_err(|errno| FileError::errno(errno, "setting its permissions"))?;
    }
    Ok(())
}

fn sync_directory(target: &Target) -> JobResult<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(&target.directory, c".", flags, Mode::empty())
        .and_then(fsync)
        .map_err(write_failed)
}

fn length(file: &OwnedFd) -> JobResult<u64> {
    let status = fstat(file).map_err(resolve_error)?;
    Ok(u64::try_from(status.st_size).unwrap_or(0))
}

#[cold]
pub(super) fn create_failed(errno: Errno) -> JobError {
    FileError::errno(errno, "making the file").into()
}

#[cold]
pub(super) fn write_failed(errno: Errno) -> JobError {
    FileError::errno(errno, "writing the file").into()
}

#[cold]
pub(super) fn conflict(text: &'static str) -> JobError {
    FileError::new(FailureKind::Conflict, text).into()
}
