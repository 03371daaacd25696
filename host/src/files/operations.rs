use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use vmcell_wire::files::{Answer, Work};

use super::{Entry, FileFailureKind, Files, Usage};
use crate::error::Error;
use vmcell_tree::wire_time;

impl Files {
    /// What there is at a path; a symbolic link at its end is followed.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`NotFound`](FileFailureKind::NotFound) if
    /// there is nothing.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stat(&self, path: impl AsRef<Path>) -> Result<Entry, Error> {
        self.look(path.as_ref(), true, false).await
    }

    /// As [`stat`](Self::stat), but a symbolic link is not followed.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stat_link(&self, path: impl AsRef<Path>) -> Result<Entry, Error> {
        self.look(path.as_ref(), false, false).await
    }

    /// Whether there is anything at a path. A symbolic link that points
    /// nowhere is something.
    ///
    /// # Errors
    /// It cannot be told: the path leaves its root, or the VM is gone.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn exists(&self, path: impl AsRef<Path>) -> Result<bool, Error> {
        match self.stat_link(path).await {
            Ok(_) => Ok(true),
            Err(Error::File(failure)) if failure.kind == FileFailureKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The SHA-256 of a file's bytes, computed in the guest.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn sha256(&self, path: impl AsRef<Path>) -> Result<[u8; 32], Error> {
        let entry = self.look(path.as_ref(), true, true).await?;
        entry.sha256.ok_or_else(|| {
            Error::Invalid(format!("{} is not a regular file", entry.path.display()))
        })
    }

    /// What a symbolic link points to.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no link.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let path = path.as_ref();
        let entry = self.stat_link(path).await?;
        entry.target.ok_or_else(|| {
            let path = super::path::shown(path);
            Error::Invalid(format!("{path} is not a symbolic link"))
        })
    }

    /// Makes a directory, and those above it that are missing. One that is
    /// there is fine.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) if
    /// something else is there.
    ///
    /// # Cancel safety
    /// It may or may not be made if the future is dropped.
    pub async fn make_directory(&self, path: impl AsRef<Path>) -> Result<Entry, Error> {
        self.make_directory_with_mode(path, None).await
    }

    /// As [`make_directory`](Self::make_directory), with these permissions for
    /// the last one.
    ///
    /// # Errors
    /// See [`make_directory`](Self::make_directory).
    ///
    /// # Cancel safety
    /// See [`make_directory`](Self::make_directory).
    pub async fn make_directory_with_mode(
        &self,
        path: impl AsRef<Path>,
        mode: impl Into<Option<u32>>,
    ) -> Result<Entry, Error> {
        let path = path.as_ref();
        let work = Work::MakeDirectory {
            path: self.inside(path)?,
            mode: mode.into().map(permissions).transpose()?,
            owner: self.owner.as_wire(),
        };
        self.entry_after(path, work).await
    }

    /// Removes a file, a link or an empty directory.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) for
    /// a directory that is not empty.
    ///
    /// # Cancel safety
    /// It may or may not be removed if the future is dropped.
    pub async fn remove(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let work = Work::Remove {
            path: self.inside(path)?,
            tree: false,
        };
        self.begin(path, work).await?.done().await
    }

    /// Removes an entry and everything below it. Links are removed, never
    /// what they point to.
    ///
    /// # Errors
    /// [`Error::File`] names the entry that could not be removed; others may
    /// be gone.
    ///
    /// # Cancel safety
    /// If the future is dropped, the guest stops soon; a part may be gone.
    pub async fn remove_tree(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let work = Work::Remove {
            path: self.inside(path)?,
            tree: true,
        };
        self.begin(path, work).await?.done().await
    }

    /// Gives an entry another name. What has that name is replaced, as
    /// rename(2) does it.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// It may or may not be renamed if the future is dropped.
    pub async fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Entry, Error> {
        self.rename_if(from.as_ref(), to.as_ref(), true).await
    }

    /// As [`rename`](Self::rename), but nothing is replaced.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) if
    /// the name is taken.
    ///
    /// # Cancel safety
    /// See [`rename`](Self::rename).
    pub async fn rename_new(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Entry, Error> {
        self.rename_if(from.as_ref(), to.as_ref(), false).await
    }

    /// Copies a file, a link, or a directory with all that is below it, within
    /// the guest.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// A part of a tree may be copied if the future is dropped.
    pub async fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Entry, Error> {
        let to = to.as_ref();
        let work = Work::Copy {
            from: self.inside(from.as_ref())?,
            to: self.inside(to)?,
            owner: self.owner.as_wire(),
        };
        self.entry_after(to, work).await
    }

    /// Sets permissions; a symbolic link is followed.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// They may or may not be set if the future is dropped.
    pub async fn set_mode(&self, path: impl AsRef<Path>, mode: u32) -> Result<Entry, Error> {
        self.set_mode_of(path.as_ref(), mode, false).await
    }

    /// Sets the permissions of an entry and of everything below it but links.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// A part may be done if the future is dropped.
    pub async fn set_mode_of_tree(
        &self,
        path: impl AsRef<Path>,
        mode: u32,
    ) -> Result<Entry, Error> {
        self.set_mode_of(path.as_ref(), mode, true).await
    }

    /// Sets the owner: `USER` or `USER:GROUP`, names or numbers. A symbolic
    /// link itself gets it.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// It may or may not be set if the future is dropped.
    pub async fn set_owner(&self, path: impl AsRef<Path>, owner: &str) -> Result<Entry, Error> {
        self.set_owner_of(path.as_ref(), owner, false).await
    }

    /// Sets the owner of an entry and of everything below it.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// A part may be done if the future is dropped.
    pub async fn set_owner_of_tree(
        &self,
        path: impl AsRef<Path>,
        owner: &str,
    ) -> Result<Entry, Error> {
        self.set_owner_of(path.as_ref(), owner, true).await
    }

    /// Makes a symbolic link. What it points to need not exist.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) if
    /// the name is taken.
    ///
    /// # Cancel safety
    /// It may or may not be made if the future is dropped.
    pub async fn symlink(
        &self,
        target: impl AsRef<OsStr>,
        path: impl AsRef<Path>,
    ) -> Result<Entry, Error> {
        let path = path.as_ref();
        let work = Work::Symlink {
            path: self.inside(path)?,
            target: target.as_ref().as_bytes(),
            owner: self.owner.as_wire(),
        };
        self.entry_after(path, work).await
    }

    /// Sets the time of the last change, to now if there is none; makes an
    /// empty file if there is nothing.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// It may or may not be done if the future is dropped.
    pub async fn touch(
        &self,
        path: impl AsRef<Path>,
        modified: impl Into<Option<SystemTime>>,
    ) -> Result<Entry, Error> {
        let path = path.as_ref();
        let work = Work::Touch {
            path: self.inside(path)?,
            modified: modified.into().map(wire_time),
            owner: self.owner.as_wire(),
        };
        self.entry_after(path, work).await
    }

    /// How much an entry and everything below it takes up.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn usage(&self, path: impl AsRef<Path>) -> Result<Usage, Error> {
        let path = path.as_ref();
        let work = Work::Usage {
            path: self.inside(path)?,
        };
        self.begin(path, work).await?.only_answer(Usage::of).await
    }

    /// Makes what was written safe on the guest's disk: a file, or the whole
    /// file system that a directory is in.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn sync(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let work = Work::Sync {
            path: self.inside(path)?,
        };
        self.begin(path, work).await?.done().await
    }

    async fn look(&self, path: &Path, follow: bool, digest: bool) -> Result<Entry, Error> {
        let work = Work::Stat {
            path: self.inside(path)?,
            follow,
            digest,
        };
        self.entry_after(path, work).await
    }

    async fn rename_if(&self, from: &Path, to: &Path, replace: bool) -> Result<Entry, Error> {
        let work = Work::Rename {
            from: self.inside(from)?,
            to: self.inside(to)?,
            replace,
        };
        self.entry_after(to, work).await
    }

    async fn set_mode_of(&self, path: &Path, mode: u32, tree: bool) -> Result<Entry, Error> {
        let work = Work::SetMode {
            path: self.inside(path)?,
            mode: permissions(mode)?,
            tree,
        };
        self.entry_after(path, work).await
    }

    async fn set_owner_of(&self, path: &Path, owner: &str, tree: bool) -> Result<Entry, Error> {
        let work = Work::SetOwner {
            path: self.inside(path)?,
            owner: vmcell_wire::files::Owner::User(owner),
            tree,
        };
        self.entry_after(path, work).await
    }

    /// Does something and answers what is there then.
    async fn entry_after(&self, path: &Path, work: Work<'_>) -> Result<Entry, Error> {
        let top = self.below(path)?;
        let job = self.begin(path, work).await?;
        job.only_answer(|answer| entry_at(answer, top)).await
    }
}

/// The entry of an answer that is about one.
pub(super) fn entry_at(answer: Answer<'_>, path: &Path) -> Option<Entry> {
    match answer {
        Answer::Entry(entry) if entry.path.is_empty() => Some(Entry::from_guest(&entry, path)),
        _ => None,
    }
}

/// Permissions as the guest wants them.
pub(super) fn permissions(mode: u32) -> Result<u16, Error> {
    u16::try_from(mode)
        .ok()
        .filter(|mode| *mode <= 0o7777)
        .ok_or_else(|| Error::Invalid(format!("permissions are 0 to 0o7777, not {mode:#o}")))
}
