use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use vmcell_wire::files::{FileOperation, FileReply};

use super::{Entry, FileFailureKind, Files, Usage};
use crate::error::Error;
use vmcell_tree::wire_time;

impl Files {
    /// Returns the entry at a path. Follows a symbolic link at its end.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`NotFound`](FileFailureKind::NotFound) if
    /// it does not exist.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stat(&self, path: impl AsRef<Path>) -> Result<Entry, Error> {
        self.stat_with(path.as_ref(), true, false).await
    }

    /// Like [`stat`](Self::stat), but does not follow a symbolic link.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stat_link(&self, path: impl AsRef<Path>) -> Result<Entry, Error> {
        self.stat_with(path.as_ref(), false, false).await
    }

    /// Returns whether a path exists. A dangling symbolic link exists.
    ///
    /// # Errors
    /// If it cannot be determined: the path leaves the root, or the VM is gone.
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

    /// Returns the SHA-256 of a file, computed in the guest.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn sha256(&self, path: impl AsRef<Path>) -> Result<[u8; 32], Error> {
        let entry = self.stat_with(path.as_ref(), true, true).await?;
        entry.sha256.ok_or_else(|| {
            Error::Invalid(format!("{} is not a regular file", entry.path.display()))
        })
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not a link.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let path = path.as_ref();
        let entry = self.stat_link(path).await?;
        entry.target.ok_or_else(|| {
            let path = super::path::display_path(path);
            Error::Invalid(format!("{path} is not a symbolic link"))
        })
    }

    /// Creates a directory and its missing parents. An existing directory is
    /// not an error.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) if
    /// something else exists there.
    ///
    /// # Cancel safety
    /// If the future is dropped, the directory may or may not be created.
    pub async fn make_directory(&self, path: impl AsRef<Path>) -> Result<Entry, Error> {
        self.make_directory_with_mode(path, None).await
    }

    /// Like [`make_directory`](Self::make_directory), with these permissions
    /// for the last directory.
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
        let operation = FileOperation::MakeDirectory {
            path: self.relative_bytes(path)?,
            mode: mode.into().map(permissions).transpose()?,
            owner: self.owner.as_wire(),
        };
        self.entry_from(path, operation).await
    }

    /// Removes a file, a link or an empty directory.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) for
    /// a directory that is not empty.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be removed.
    pub async fn remove(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let operation = FileOperation::Remove {
            path: self.relative_bytes(path)?,
            tree: false,
        };
        self.begin(path, operation).await?.finish().await
    }

    /// Removes an entry and everything below it. Removes symbolic links, never
    /// their targets.
    ///
    /// # Errors
    /// [`Error::File`] names the entry that could not be removed; others may
    /// already be removed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the guest stops soon; a part may be removed.
    pub async fn remove_tree(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let operation = FileOperation::Remove {
            path: self.relative_bytes(path)?,
            tree: true,
        };
        self.begin(path, operation).await?.finish().await
    }

    /// Renames an entry. Replaces an existing entry with the new name, like
    /// rename(2).
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be renamed.
    pub async fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Entry, Error> {
        self.rename_if(from.as_ref(), to.as_ref(), true).await
    }

    /// Like [`rename`](Self::rename), but replaces nothing.
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

    /// Copies a file, a link, or a directory with everything below it, within
    /// the guest.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, a part of the tree may be copied.
    pub async fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Entry, Error> {
        let to = to.as_ref();
        let operation = FileOperation::Copy {
            from: self.relative_bytes(from.as_ref())?,
            to: self.relative_bytes(to)?,
            owner: self.owner.as_wire(),
        };
        self.entry_from(to, operation).await
    }

    /// Sets the permissions. Follows a symbolic link.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, they may or may not be set.
    pub async fn set_mode(&self, path: impl AsRef<Path>, mode: u32) -> Result<Entry, Error> {
        self.set_mode_of(path.as_ref(), mode, false).await
    }

    /// Sets the permissions of an entry and of everything below it, except
    /// links.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, a part may be done.
    pub async fn set_mode_of_tree(
        &self,
        path: impl AsRef<Path>,
        mode: u32,
    ) -> Result<Entry, Error> {
        self.set_mode_of(path.as_ref(), mode, true).await
    }

    /// Sets the owner: `USER` or `USER:GROUP`, names or numbers. Does not
    /// follow a symbolic link.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be set.
    pub async fn set_owner(&self, path: impl AsRef<Path>, owner: &str) -> Result<Entry, Error> {
        self.set_owner_of(path.as_ref(), owner, false).await
    }

    /// Sets the owner of an entry and of everything below it.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, a part may be done.
    pub async fn set_owner_of_tree(
        &self,
        path: impl AsRef<Path>,
        owner: &str,
    ) -> Result<Entry, Error> {
        self.set_owner_of(path.as_ref(), owner, true).await
    }

    /// Creates a symbolic link. Its target need not exist.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`Conflict`](FileFailureKind::Conflict) if
    /// the name is taken.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be created.
    pub async fn symlink(
        &self,
        target: impl AsRef<OsStr>,
        path: impl AsRef<Path>,
    ) -> Result<Entry, Error> {
        let path = path.as_ref();
        let operation = FileOperation::Symlink {
            path: self.relative_bytes(path)?,
            target: target.as_ref().as_bytes(),
            owner: self.owner.as_wire(),
        };
        self.entry_from(path, operation).await
    }

    /// Sets the modification time, by default to now. Creates an empty file if
    /// the path does not exist.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be done.
    pub async fn touch(
        &self,
        path: impl AsRef<Path>,
        modified: impl Into<Option<SystemTime>>,
    ) -> Result<Entry, Error> {
        let path = path.as_ref();
        let operation = FileOperation::Touch {
            path: self.relative_bytes(path)?,
            modified: modified.into().map(wire_time),
            owner: self.owner.as_wire(),
        };
        self.entry_from(path, operation).await
    }

    /// Returns the disk usage of an entry and everything below it.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn usage(&self, path: impl AsRef<Path>) -> Result<Usage, Error> {
        let path = path.as_ref();
        let operation = FileOperation::Usage {
            path: self.relative_bytes(path)?,
        };
        self.begin(path, operation)
            .await?
            .single_answer(Usage::from_answer)
            .await
    }

    /// Syncs a file to the guest's disk, or for a directory the whole file
    /// system that contains it.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn sync(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let operation = FileOperation::Sync {
            path: self.relative_bytes(path)?,
        };
        self.begin(path, operation).await?.finish().await
    }

    async fn stat_with(&self, path: &Path, follow: bool, digest: bool) -> Result<Entry, Error> {
        let operation = FileOperation::Stat {
            path: self.relative_bytes(path)?,
            follow,
            digest,
        };
        self.entry_from(path, operation).await
    }

    async fn rename_if(&self, from: &Path, to: &Path, replace: bool) -> Result<Entry, Error> {
        let operation = FileOperation::Rename {
            from: self.relative_bytes(from)?,
            to: self.relative_bytes(to)?,
            replace,
        };
        self.entry_from(to, operation).await
    }

    async fn set_mode_of(&self, path: &Path, mode: u32, tree: bool) -> Result<Entry, Error> {
        let operation = FileOperation::SetMode {
            path: self.relative_bytes(path)?,
            mode: permissions(mode)?,
            tree,
        };
        self.entry_from(path, operation).await
    }

    async fn set_owner_of(&self, path: &Path, owner: &str, tree: bool) -> Result<Entry, Error> {
        let operation = FileOperation::SetOwner {
            path: self.relative_bytes(path)?,
            owner: vmcell_wire::files::Owner::User(owner),
            tree,
        };
        self.entry_from(path, operation).await
    }

    /// Runs work, and returns the entry in its answer.
    async fn entry_from(&self, path: &Path, operation: FileOperation<'_>) -> Result<Entry, Error> {
        let top = self.relative_path(path)?;
        let job = self.begin(path, operation).await?;
        job.single_answer(|answer| entry_at(answer, top)).await
    }
}

/// Returns the entry of an answer about a single one.
pub(super) fn entry_at(answer: FileReply<'_>, path: &Path) -> Option<Entry> {
    match answer {
        FileReply::Entry(entry) if entry.path.is_empty() => Some(Entry::from_guest(&entry, path)),
        _ => None,
    }
}

/// Checks permissions, and converts them for the guest.
pub(super) fn permissions(mode: u32) -> Result<u16, Error> {
    u16::try_from(mode)
        .ok()
        .filter(|mode| *mode <= 0o7777)
        .ok_or_else(|| Error::Invalid(format!("permissions must be 0 to 0o7777, not {mode:#o}")))
}
