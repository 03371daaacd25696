use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags, mkdirat, openat, symlinkat},
    io::Errno,
    path::DecInt,
};
use vmcell_wire::{
    FailureKind,
    files::{
        EditRecord,
        record::{self, Piece, Reader},
    },
};

use super::change::{Action, Change};
use crate::{
    files::{
        directory_stack::open_directory, remove::remove_tree, temporary::random_name,
        write::write_some,
    },
    worker::{FileError, JobError, JobIo, JobResult},
};

/// How many changes a request may have.
const MAX_CHANGES: usize = 10_000;

/// How many bytes all their paths may have.
const MAX_PATHS: usize = 4 * 1024 * 1024;

/// The staging directory: it has the new entries before the commit, and the old
/// ones after it. Only root can access it. It is removed when this is dropped.
pub(super) struct Staging<'t> {
    parent: BorrowedFd<'t>,
    name: Vec<u8>,
    directory: OwnedFd,
    kept: bool,
}

impl<'t> Staging<'t> {
    pub(super) fn new(parent: BorrowedFd<'t>) -> Result<Self, Errno> {
        let name = random_name()?;
        mkdirat(parent, &*name, Mode::RWXU)?;
        Ok(Self {
            directory: open_directory(parent, &*name)?,
            parent,
            name,
            kept: false,
        })
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Keeps the directory, because the entries in it are nowhere else.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Another process may have removed it.
            let _ = remove_tree(self.parent, &self.name, || Ok(()));
        }
    }
}

/// Returns the name of a change's entry in the staging directory.
pub(super) fn staged_name(index: usize) -> DecInt {
    DecInt::new(index)
}

/// Reads all records, and stages their files and links.
pub(super) fn receive_changes(io: &mut JobIo, staging: &Staging<'_>) -> JobResult<Vec<Change>> {
    let mut changes = ChangeReader {
        directory: staging.directory(),
        changes: Vec::new(),
        paths: 0,
        file: None,
        remaining: 0,
    };
    let mut reader = Reader::new();
    while io
        .next_record(&mut reader, |piece| changes.take(piece))?
        .is_some()
    {}
    changes.end_file()?;
    reject_duplicate_paths(&changes.changes)?;
    Ok(changes.changes)
}

struct ChangeReader<'s> {
    directory: BorrowedFd<'s>,
    changes: Vec<Change>,
    /// How many bytes the paths have.
    paths: usize,
    /// The file that gets the raw bytes.
    file: Option<OwnedFd>,
    /// How many raw bytes are still to come.
    remaining: u64,
}

impl ChangeReader<'_> {
    fn take(&mut self, piece: Piece<'_>) -> JobResult<()> {
        match piece {
            Piece::Raw(bytes) => self.write(bytes),
            Piece::Message(message) => {
                self.end_file()?;
                self.begin(&record::decode(message)?)
            }
        }
    }

    fn begin(&mut self, record: &EditRecord<'_>) -> JobResult<()> {
        if !record.is_valid() {
            return Err(invalid("a change is not valid"));
        }
        let name = staged_name(self.changes.len());
        let (path, precondition, action) = match *record {
            EditRecord::Put {
                path,
                precondition,
                mode,
                length,
            } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let private = Mode::RUSR | Mode::WUSR;
                let file = openat(self.directory, name.as_c_str(), flags, private);
                self.file = Some(file.map_err(staging_failed)?);
                self.remaining = length;
                (path, precondition, Action::Put { mode })
            }
            EditRecord::PutLink {
                path,
                precondition,
                target,
            } => {
                symlinkat(target, self.directory, name.as_c_str()).map_err(staging_failed)?;
                (path, precondition, Action::PutLink)
            }
            EditRecord::SetMode {
                path,
                precondition,
                mode,
            } => (path, precondition, Action::SetMode(mode)),
            EditRecord::Remove { path, precondition } => (path, precondition, Action::Remove),
            _ => return Err(invalid("the kind of a change is not supported")),
        };
        if !is_normalized(path) {
            let text = "the path of a change must be relative, without . and ..";
            return Err(FileError::new(FailureKind::Invalid, text)
                .with_path(path)
                .into());
        }
        self.paths = self.paths.saturating_add(path.len());
        if self.changes.len() >= MAX_CHANGES || self.paths > MAX_PATHS {
            return Err(FileError::new(FailureKind::Limit, "there are too many changes").into());
        }
        self.changes.push(Change {
            path: Vec::from(path),
            precondition,
            action,
            before: None,
        });
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> JobResult<()> {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let (Some(file), Some(remaining)) = (&self.file, self.remaining.checked_sub(count)) else {
            return Err(invalid("more bytes came than were announced"));
        };
        while !bytes.is_empty() {
            let count = write_some(file.as_fd(), bytes, None)?;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        self.remaining = remaining;
        Ok(())
    }

    fn end_file(&mut self) -> JobResult<()> {
        if self.remaining > 0 {
            return Err(invalid("fewer bytes came than were announced"));
        }
        self.file = None;
        Ok(())
    }
}

/// Returns whether a path has only names, without `.`, `..` and empty ones, so that
/// two different paths are two different entries.
fn is_normalized(path: &[u8]) -> bool {
    !path.contains(&0)
        && path
            .split(|byte| *byte == b'/')
            .all(|name| !matches!(name, b"" | b"." | b".."))
}

fn reject_duplicate_paths(changes: &[Change]) -> JobResult<()> {
    let mut paths: Vec<&[u8]> = changes.iter().map(|change| &*change.path).collect();
    paths.sort_unstable();
    for (path, next) in paths.iter().zip(paths.iter().skip(1)) {
        if path == next {
            let failure = FileError::new(FailureKind::Invalid, "two changes have this path");
            return Err(failure.with_path(path).into());
        }
    }
    Ok(())
}

#[cold]
fn invalid(text: &'static str) -> JobError {
    FileError::new(FailureKind::Invalid, text).into()
}

#[cold]
pub(super) fn staging_failed(errno: Errno) -> JobError {
    FileError::errno(errno, "preparing the changes").into()
}
