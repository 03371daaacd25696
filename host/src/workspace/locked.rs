use super::{WorkspaceError, WorkspaceState, folder::Folder, lock::FileLock, record::Record};
use crate::{error::Error, on_thread::on_thread};

/// A workspace that nobody else changes.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) folder: Folder,
    pub(super) record: Record,
    /// Held if no program runs its VM.
    owner: Option<FileLock>,
    _changes: FileLock,
}

impl Locked {
    /// Waits until nobody else changes the workspace. What a program has left undone that
    /// died is finished or undone.
    pub(super) async fn wait(folder: Folder, id: &str) -> Result<Self, Error> {
        let not_found = WorkspaceError::NotFound { id: id.to_owned() };
        on_thread("lock the workspace", move || {
            if !folder.path().is_dir() {
                return Err(not_found.into());
            }
            let lock = FileLock::wait(&folder.changes_lock());
            let lock = lock.map_err(Error::host("lock the workspace"))?;
            let Some(changes) = lock else {
                return Err(not_found.into());
            };
            Self::with(folder, changes, not_found)
        })
        .await
    }

    fn with(folder: Folder, changes: FileLock, missing: WorkspaceError) -> Result<Self, Error> {
        let Some(mut record) = folder.read()? else {
            return Err(missing.into());
        };
        let owner = FileLock::try_take(&folder.owner_lock());
        let owner = owner.map_err(Error::host("lock the workspace"))?;
        if owner.is_some() {
            folder.repair(&mut record)?;
        }
        Ok(Self {
            folder,
            record,
            owner,
            _changes: changes,
        })
    }

    /// A workspace that is being created.
    pub(super) fn new(folder: Folder, record: Record, changes: FileLock) -> Result<Self, Error> {
        let owner = FileLock::try_take(&folder.owner_lock());
        let owner = owner.map_err(Error::host("lock the workspace"))?;
        Ok(Self {
            folder,
            record,
            owner,
            _changes: changes,
        })
    }

    /// Returns its state.
    pub(super) fn state(&self) -> WorkspaceState {
        match self.owner {
            Some(_) => WorkspaceState::Stopped,
            None => WorkspaceState::Running,
        }
    }

    /// Returns the right to run its VM; `None` if another program has it.
    pub(super) fn take_owner(&mut self) -> Option<FileLock> {
        self.owner.take()
    }

    /// Waits until the program that ran its VM has given the right back.
    pub(super) async fn wait_for_owner(&mut self) -> Result<(), Error> {
        if self.owner.is_none() {
            let path = self.folder.owner_lock();
            let waiting = on_thread("lock the workspace", move || {
                FileLock::wait(&path).map_err(Error::host("lock the workspace"))
            });
            self.owner = waiting.await?;
        }
        Ok(())
    }

    /// Fails if its VM runs.
    pub(super) fn require_stopped(&self) -> Result<(), WorkspaceError> {
        match self.state() {
            WorkspaceState::Stopped => Ok(()),
            state => Err(WorkspaceError::State {
                id: self.record.id.clone(),
                state,
                needed: "stopped: stop it first",
            }),
        }
    }

    pub(super) fn write(&self) -> Result<(), Error> {
        self.folder.write(&self.record)
    }
}
