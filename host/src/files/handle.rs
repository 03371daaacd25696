use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use vmcell_wire::{
    Request,
    files::{self as wire, Work},
};

use super::{FileOwner, Job, path};
use crate::{error::Error, vm::Vm};

/// Access to the files of a guest, within a directory that no path can leave.
///
/// [`Vm::files`] gives access to everything; [`at`](Self::at) confines it.
/// Paths are relative to that root, or absolute and below it. A path that leads
/// out of the root, through `..` or through a symbolic link that a process in
/// the guest has planted, is refused as
/// [`Denied`](super::FileFailureKind::Denied); the guest's kernel sees to that,
/// so no race gets around it.
///
/// The work is done with the rights of the guest's root user. So that users of
/// the guest cannot borrow them, a symbolic link on the way is followed only if
/// it belongs to root, or if its owner also owns what it leads to. Any other is
/// refused as [`Denied`](super::FileFailureKind::Denied). New files belong
/// to whoever has the directory that they are made in, unless
/// [`owned_by`](Self::owned_by) says otherwise.
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

    /// The same within a directory, which must be an absolute path without
    /// symbolic links in it.
    #[must_use]
    pub fn at(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = root.into();
        self
    }

    /// The same with another owner for what is made.
    #[must_use]
    pub fn owned_by(mut self, owner: FileOwner) -> Self {
        self.owner = owner;
        self
    }

    /// The directory that no path can leave.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path as the guest wants it: relative to the root.
    pub(crate) fn inside<'a>(&self, path: &'a Path) -> Result<&'a [u8], Error> {
        path::inside(&self.root, path)
    }

    /// The same as a path.
    pub(crate) fn below<'a>(&self, path: &'a Path) -> Result<&'a Path, Error> {
        self.inside(path)
            .map(|bytes| Path::new(OsStr::from_bytes(bytes)))
    }

    /// Begins work on the entry at `subject`, when there is room for it.
    pub(crate) async fn begin(&self, subject: &Path, work: Work<'_>) -> Result<Job, Error> {
        let permit = self.vm.file_permit().await;
        let stream = self.open(work)?;
        Ok(Job::new(self.vm.clone(), stream, subject, permit))
    }

    /// Begins work that goes on until it is dropped.
    pub(super) fn begin_endless(&self, subject: &Path, work: Work<'_>) -> Result<Job, Error> {
        let stream = self.open(work)?;
        Ok(Job::new(self.vm.clone(), stream, subject, None))
    }

    fn open(&self, work: Work<'_>) -> Result<crate::session::Stream, Error> {
        let root = path::root(&self.root)?;
        let request = Request::Files(wire::Files { root, work });
        self.vm.open(&request)
    }
}
