use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{FileType, OFlags, Stat, fstat, readlinkat_raw},
    io::Errno,
};
use vmcell_wire::{
    files::{Answer, FileEntry},
    limits::MAX_PATH,
};

use super::{Tour, gone_is_fine};
use crate::{
    files::{
        digest::Digester,
        entry::describe,
        names::Names,
        target::{HARMLESS, is},
    },
    worker::{FileError, JobError, JobIo},
};

/// Tells entries to the host.
pub(super) struct Teller<'a> {
    io: &'a mut JobIo,
    names: Option<Names>,
    digester: Option<Digester>,
    target: Vec<u8>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(io: &'a mut JobIo, names: bool, digest: bool) -> Self {
        Self {
            io,
            names: names.then(Names::read),
            digester: digest.then(Digester::new),
            target: alloc::vec![0; MAX_PATH],
        }
    }

    pub(super) fn check(&self) -> Result<(), JobError> {
        self.io.check_cancelled()
    }

    /// Tells an entry that could not be looked at.
    pub(super) fn tell_trouble(
        &mut self,
        path: &[u8],
        failure: &FileError,
    ) -> Result<(), JobError> {
        self.io.send_answer(&Answer::Problem {
            path,
            failure: failure.as_failure(),
        })
    }

    /// Tells the entry that came last on a tour. The inner failure is the
    /// entry's own.
    pub(super) fn tell(
        &mut self,
        tour: &Tour,
        kind: FileType,
    ) -> Result<Result<(), FileError>, JobError> {
        if kind == FileType::RegularFile && self.digester.is_some() {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | HARMLESS;
            return match tour.open(flags) {
                Ok(file) => match self.tell_found(tour.path(), file.as_fd()) {
                    Err(JobError::Failed(failure)) => Ok(Err(failure)),
                    told => told.map(Ok),
                },
                Err(errno) => Ok(gone_is_fine(errno)),
            };
        }
        let status = match tour.status() {
            Ok(status) => status,
            Err(errno) => return Ok(gone_is_fine(errno)),
        };
        let mut target = core::mem::take(&mut self.target);
        let length = if is(&status, FileType::Symlink) {
            readlinkat_raw(tour.directory(), tour.name(), target.as_mut_slice())
        } else {
            Ok(0)
        };
        let told = match length {
            Ok(length) => {
                let target = target.get(..length).unwrap_or_default();
                self.tell_status(tour.path(), &status, target, None).map(Ok)
            }
            // It is no link any more.
            Err(Errno::INVAL) => Ok(Ok(())),
            Err(errno) => Ok(gone_is_fine(errno)),
        };
        self.target = target;
        told
    }

    /// Tells what was opened.
    pub(super) fn tell_found(
        &mut self,
        path: &[u8],
        found: BorrowedFd<'_>,
    ) -> Result<(), JobError> {
        let looking = |errno| FileError::from_errno(errno, "looking at it");
        let status = fstat(found).map_err(looking)?;
        let digest = match &mut self.digester {
            Some(digester) if is(&status, FileType::RegularFile) => {
                Some(digester.digest(self.io, found)?)
            }
            _ => None,
        };
        self.tell_status(path, &status, &[], digest)
    }

    fn tell_status(
        &mut self,
        path: &[u8],
        status: &Stat,
        target: &[u8],
        digest: Option<[u8; 32]>,
    ) -> Result<(), JobError> {
        let (owner, group) = match &mut self.names {
            Some(names) => names.of(status.st_uid, status.st_gid),
            None => ("", ""),
        };
        self.io.send_answer(&Answer::Entry(FileEntry {
            owner,
            group,
            target,
            digest,
            ..describe(path, status)
        }))
    }
}
