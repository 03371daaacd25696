use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{FileType, OFlags, Stat, fstat, readlinkat_raw},
    io::Errno,
};
use vmcell_wire::{
    files::{FileEntry, FileReply},
    limits::MAX_PATH,
};

use super::traversal::{Traversal, ignore_vanished};
use crate::{
    files::{
        digest::Digester,
        entry::{describe, has_type},
        owner_names::OwnerNames,
        target::NO_SIDE_EFFECTS,
    },
    worker::{FileError, FileResult, JobError, JobIo, JobResult},
};

/// Sends entries to the host.
pub(super) struct EntrySender<'a> {
    io: &'a mut JobIo,
    names: Option<OwnerNames>,
    digester: Option<Digester>,
    target: Vec<u8>,
}

impl<'a> EntrySender<'a> {
    pub(super) fn new(io: &'a mut JobIo, names: bool, digest: bool) -> Self {
        Self {
            io,
            names: names.then(OwnerNames::read),
            digester: digest.then(Digester::new),
            target: alloc::vec![0; MAX_PATH],
        }
    }

    pub(super) fn check(&self) -> JobResult<()> {
        self.io.check_cancelled()
    }

    /// Reports an entry that could not be read.
    pub(super) fn send_problem(&mut self, path: &[u8], failure: &FileError) -> JobResult<()> {
        self.io.send_answer(&FileReply::Problem {
            path,
            failure: failure.as_failure(),
        })
    }

    /// Sends the current entry of a traversal. The inner error concerns only this
    /// entry.
    pub(super) fn send(
        &mut self,
        traversal: &Traversal,
        kind: FileType,
    ) -> JobResult<FileResult<()>> {
        if kind == FileType::RegularFile && self.digester.is_some() {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | NO_SIDE_EFFECTS;
            return match traversal.open(flags) {
                Ok(file) => match self.send_opened(traversal.path(), file.as_fd()) {
                    Err(JobError::Failed(failure)) => Ok(Err(failure)),
                    sent => sent.map(Ok),
                },
                Err(errno) => Ok(ignore_vanished(errno)),
            };
        }
        let status = match traversal.status() {
            Ok(status) => status,
            Err(errno) => return Ok(ignore_vanished(errno)),
        };
        let mut target = core::mem::take(&mut self.target);
        let length = if has_type(&status, FileType::Symlink) {
            readlinkat_raw(
                traversal.directory(),
                traversal.name(),
                target.as_mut_slice(),
            )
        } else {
            Ok(0)
        };
        let sent = match length {
            Ok(length) => {
                let target = target.get(..length).unwrap_or_default();
                self.send_status(traversal.path(), &status, target, None)
                    .map(Ok)
            }
            // It is not a link any more.
            Err(Errno::INVAL) => Ok(Ok(())),
            Err(errno) => Ok(ignore_vanished(errno)),
        };
        self.target = target;
        sent
    }

    /// Sends an entry that was opened.
    pub(super) fn send_opened(&mut self, path: &[u8], found: BorrowedFd<'_>) -> JobResult<()> {
        let stat_failed = |errno| FileError::errno(errno, "looking at it");
        let status = fstat(found).map_err(stat_failed)?;
        let digest = match &mut self.digester {
            Some(digester) if has_type(&status, FileType::RegularFile) => {
                Some(digester.digest(self.io, found)?)
            }
            _ => None,
        };
        self.send_status(path, &status, &[], digest)
    }

    fn send_status(
        &mut self,
        path: &[u8],
        status: &Stat,
        target: &[u8],
        digest: Option<[u8; 32]>,
    ) -> JobResult<()> {
        let (owner, group) = match &mut self.names {
            Some(names) => names.look_up(status.st_uid, status.st_gid),
            None => ("", ""),
        };
        self.io.send_answer(&FileReply::Entry(FileEntry {
            owner,
            group,
            target,
            digest,
            ..describe(path, status)
        }))
    }
}
