use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use vmcell_wire::{
    Request,
    files::{self as wire, FileOperation},
};

use super::{FileOwner, Job, path};
use crate::{error::Error, vm::Vm};

/// Access to the files of a guest, confined to a root directory.
///
/// [`Vm::files`] gives access to everything; [`at`](Self::at) confines it to a
/// directory. Paths are relative to that root, or absolute and below it. A path
/// that leads out of the root, through `..` or through a symbolic link that a
/// process in the guest has created, fails with
/// [`Denied`](super::FileFailureKind::Denied). The guest's kernel enforces
/// this, so there is no race.
///
/// The work is done as the guest's root user. So that other users of the guest
/// cannot exploit this, a symbolic link in a path is followed only if it
/// belongs to root, or if its owner also owns its target. Any other link fails
/// with [`Denied`](super::FileFailureKind::Denied). New files belong to the
/// owner of their directory, unless [`owned_by`](Self::owned_by) sets another
/// one.
#[derive(Clone, Debug)]
pub struct Files {
    pub(super) vm: Vm,
    root: PathBuf,
    pub(super) owner: FileOwner,
}

impl Files {
    pub(crate) fn new(vm: Vm) -> Self {
        Self {
            vm,
            root: PathBuf::from("/"),
            owner: FileOwner::OfDirectory,
        }
    }

    /// Sets the root: an absolute path without symbolic links.
    #[must_use]
    pub fn at(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = root.into();
        self
    }

    /// Sets the owner of new files.
    #[must_use]
    pub fn owned_by(mut self, owner: FileOwner) -> Self {
        self.owner = owner;
        self
    }

    /// Returns the root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path relative to the root, as bytes for the guest.
    pub(crate) fn relative_bytes<'a>(&self, path: &'a Path) -> Result<&'a [u8], Error> {
        path::relative_bytes(&self.root, path)
    }

    /// Returns a path relative to the root.
    pub(crate) fn relative_path<'a>(&self, path: &'a Path) -> Result<&'a Path, Error> {
        self.relative_bytes(path)
            .map(|bytes| Path::new(OsStr::from_bytes(bytes)))
    }

    /// Starts work on the entry at `subject`, as soon as fewer jobs run than
    /// the limit.
    pub(crate) async fn begin(
        &self,
        subject: &Path,
        operation: FileOperation<'_>,
    ) -> Result<Job, Error> {
        let permit = self.vm.file_permit().await;
        let stream = self.open(operation)?;
        Ok(Job::new(self.vm.clone(), stream, subject, permit))
    }

    /// Starts work that runs until the job is dropped, so it does not count
    /// towards the limit of jobs.
    pub(super) fn begin_without_permit(
        &self,
        subject: &Path,
        operation: FileOperation<'_>,
    ) -> Result<Job, Error> {
        let stream = self.open(operation)?;
        Ok(Job::new(self.vm.clone(), stream, subject, None))
    }

    fn open(&self, operation: FileOperation<'_>) -> Result<crate::session::Stream, Error> {
        let root = path::root_bytes(&self.root)?;
        let request = Request::Files(wire::FileRequest { root, operation });
        self.vm.open(&request)
    }
}
