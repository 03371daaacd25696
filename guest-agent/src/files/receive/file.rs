use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{AtFlags, FileType, OFlags, ftruncate, openat, unlinkat},
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::{
        TreeRecord, Xattrs, XattrsBuf,
        record::{self, Piece},
    },
};

use super::{
    attributes::Attributes,
    directory::Directory,
    error::{directory_in_the_way, malformed_tree},
};
use crate::{
    files::{
        entry::{has_type, status_of},
        owner::{Ids, NewOwner},
        temporary::TemporaryFile,
        xattrs,
    },
    worker::{FileError, FileResult, JobIo, JobResult},
};

/// Creates a file with these bytes.
pub(super) fn make_whole(
    directory: &Directory,
    name: &[u8],
    attributes: &Attributes<'_>,
    bytes: &[u8],
    owner: &NewOwner,
) -> FileResult<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(directory, name, flags, attributes.creation_mode()) {
        // An existing file is replaced atomically by a temporary one.
        Err(Errno::EXIST) => {
            let temporary = TemporaryFile::new(directory.as_fd()).map_err(write_failed)?;
            write_at(temporary.file(), bytes, 0).map_err(write_failed)?;
            return publish(temporary, directory, name, attributes, owner);
        }
        file => file.map_err(write_failed)?,
    };
    let guard = RemoveOnDrop { directory, name };
    let new_owner = owner.owner_for_new(directory.status(), Some(attributes.ids));
    write_at(file.as_fd(), bytes, 0).map_err(write_failed)?;
    attributes
        .apply_metadata(file.as_fd(), new_owner, true)
        .map_err(write_failed)?;
    guard.keep();
    Ok(())
}

/// Removes an incomplete entry when it is dropped, unless it is
/// [kept](Self::keep).
pub(super) struct RemoveOnDrop<'a> {
    pub(super) directory: &'a Directory,
    pub(super) name: &'a [u8],
}

impl RemoveOnDrop<'_> {
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = unlinkat(self.directory, self.name, AtFlags::empty());
    }
}

/// A file whose bytes come in parts.
pub(super) struct PartialFile {
    attributes: Attributes<'static>,
    xattrs: XattrsBuf,
}

impl PartialFile {
    pub(super) fn new(attributes: &Attributes<'_>) -> Self {
        let mut xattrs = XattrsBuf::new();
        for (name, value) in attributes.xattrs.iter() {
            let _fits_as_it_did_before = xattrs.push(name, value);
        }
        Self {
            attributes: Attributes {
                mode: attributes.mode,
                ids: attributes.ids,
                modified: attributes.modified,
                xattrs: Xattrs::NONE,
            },
            xattrs,
        }
    }
}

/// Receives a file's parts up to its end, and only then gives it its name. Returns
/// its length.
pub(super) fn receive_parts(
    io: &mut JobIo,
    reader: &mut record::Reader,
    directory: &Directory,
    name: &[u8],
    parts: &PartialFile,
    owner: &NewOwner,
) -> JobResult<u64> {
    let temporary = TemporaryFile::new(directory.as_fd()).map_err(write_failed)?;
    let file = temporary.file();
    xattrs::set(file, parts.xattrs.as_xattrs()).map_err(write_failed)?;
    let mut length = 0u64;
    let mut written = 0u64;
    let mut is_complete = false;
    while !is_complete {
        let taken = io.next_record(reader, |piece| match piece {
            Piece::Raw(bytes) => {
                write_at(file, bytes, length).map_err(write_failed)?;
                length = add_length(length, u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
                written = length;
                Ok(())
            }
            Piece::Message(message) => match record::decode(message)? {
                TreeRecord::Hole { bytes } => {
                    length = add_length(length, bytes)?;
                    Ok(())
                }
                TreeRecord::EndOfFile => {
                    is_complete = true;
                    Ok(())
                }
                _ => Err(malformed_tree()),
            },
        })?;
        if taken.is_none() {
            let text = "the tree ends in the middle of a file";
            return Err(FileError::new(FailureKind::Invalid, text).into());
        }
    }
    if length > written {
        ftruncate(file, length).map_err(write_failed)?;
    }
    publish(temporary, directory, name, &parts.attributes, owner)?;
    Ok(length)
}

/// Adds to the length of a file, within the limits of the kernel.
fn add_length(length: u64, bytes: u64) -> JobResult<u64> {
    let sum = length.checked_add(bytes);
    sum.filter(|sum| i64::try_from(*sum).is_ok())
        .ok_or_else(|| FileError::errno(Errno::FBIG, "writing it").into())
}

/// Sets the metadata of a complete file and gives it its name. It replaces an
/// existing entry, unless that is a directory.
fn publish(
    temporary: TemporaryFile<'_>,
    directory: &Directory,
    name: &[u8],
    attributes: &Attributes<'_>,
    owner: &NewOwner,
) -> FileResult<()> {
    let mut temporary = temporary;
    let ids = Some(attributes.ids);
    let old = match status_of(directory, name) {
        Err(Errno::NOENT) => None,
        Ok(old) if has_type(&old, FileType::Directory) => return Err(directory_in_the_way()),
        old => Some(old.map_err(write_failed)?),
    };
    let new_owner = match &old {
        None => owner.owner_for_new(directory.status(), ids),
        Some(old) => Some(owner.owner_for_replaced_from(ids).unwrap_or(Ids::of(old))),
    };
    attributes
        .apply_metadata(temporary.file(), new_owner, false)
        .map_err(write_failed)?;
    if old.is_none() {
        match temporary.publish(name) {
            Err(Errno::EXIST) => {}
            outcome => return outcome.map_err(write_failed),
        }
    }
    match temporary.replace(name) {
        Ok(_) => Ok(()),
        Err(Errno::ISDIR) => Err(directory_in_the_way()),
        Err(errno) => Err(write_failed(errno)),
    }
}

fn write_at(file: BorrowedFd<'_>, mut bytes: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = match rustix::io::pwrite(file, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Err(Errno::INTR) => continue,
            count => count?,
        };
        bytes = bytes.get(count..).unwrap_or_default();
        offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
    Ok(())
}

fn write_failed(errno: Errno) -> FileError {
    FileError::errno(errno, "writing it")
}
