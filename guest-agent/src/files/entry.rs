use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{AtFlags, FileType, Stat, readlinkat, statat},
    io::Errno,
};
use vmcell_wire::files::{FileEntry, FileKind, FileReply, Time};

use super::owner_names::OwnerNames;
use crate::worker::{FileError, JobIo, JobResult};

/// Returns the status of an entry. Does not follow a link.
pub(crate) fn status_of(directory: impl AsFd, name: &[u8]) -> Result<Stat, Errno> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn has_type(status: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(status.st_mode) == kind
}

/// Describes an entry by its status. The caller adds names, a link's target and a
/// digest.
pub(crate) fn describe<'a>(path: &'a [u8], status: &Stat) -> FileEntry<'a> {
    FileEntry {
        path,
        kind: kind(status),
        // The lowest twelve bits fit.
        mode: u16::try_from(status.st_mode & 0o7777).unwrap_or(0),
        size: u64::try_from(status.st_size).unwrap_or(0),
        allocated: u64::try_from(status.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512),
        uid: status.st_uid,
        gid: status.st_gid,
        owner: "",
        group: "",
        modified: modified(status),
        links: u32::try_from(status.st_nlink).unwrap_or(u32::MAX),
        inode: status.st_ino,
        target: &[],
        digest: None,
    }
}

/// Returns the time of the last modification.
pub(crate) fn modified(status: &Stat) -> Time {
    Time {
        seconds: status.st_mtime,
        nanoseconds: u32::try_from(status.st_mtime_nsec).map_or(0, |time| time.min(999_999_999)),
    }
}

pub(crate) fn kind(status: &Stat) -> FileKind {
    kind_of(FileType::from_raw_mode(status.st_mode))
}

pub(crate) fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::RegularFile | FileType::Unknown => FileKind::File,
    }
}

/// Answers the request with the entry that `found` refers to.
pub(crate) fn answer(io: &mut JobIo, found: BorrowedFd<'_>) -> JobResult<()> {
    answer_with_digest(io, found, None)
}

/// Answers the request with an entry and the digest of its bytes.
pub(crate) fn answer_with_digest(
    io: &mut JobIo,
    found: BorrowedFd<'_>,
    digest: Option<[u8; 32]>,
) -> JobResult<()> {
    let stat_failed = |errno| FileError::errno(errno, "looking at it");
    let status = rustix::fs::fstat(found).map_err(stat_failed)?;
    let mut names = OwnerNames::read();
    let (owner, group) = names.look_up(status.st_uid, status.st_gid);
    let target = match kind(&status) {
        FileKind::Symlink => link_target(found, c"").map_err(stat_failed)?,
        _ => Vec::new(),
    };
    io.send_answer(&FileReply::Entry(FileEntry {
        owner,
        group,
        target: &target,
        digest,
        ..describe(&[], &status)
    }))
}

/// Returns the target of a link: of an entry in a directory, or of the descriptor
/// itself if the name is empty.
pub(crate) fn link_target(
    directory: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> Result<Vec<u8>, Errno> {
    Ok(readlinkat(directory, name, Vec::new())?.into_bytes())
}
