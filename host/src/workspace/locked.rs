use super::{
    WorkspaceError, WorkspaceState,
    folder::Folder,
    lock::FileLock,
    record::{PauseRecord, Record},
};
use crate::{error::Error, on_thread::on_thread};

/// A workspace that nobody else changes.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) folder: Folder,
    pub(super) record: Record,
    /// Held if no program runs its VM.
    owner: Option<FileLock>,
    changes: FileLock,
}

impl Locked {
    /// Waits until nobody else changes the workspace. What a program has left undone that
    /// died is finished or undone.
    pub(super) async fn wait(folder: Folder, id: &str) -> Result<Self, Error> {
        let not_found = WorkspaceError::NotFound { id: id.to_owned() };
        let changes = Self::wait_for_changes(folder.clone(), id).await?;
        on_thread("lock the workspace", move || {
            Self::with(folder, changes, not_found)
        })
        .await
    }

    /// Waits until nobody else changes the workspace, whatever is in its files.
    pub(super) async fn wait_for_changes(folder: Folder, id: &str) -> Result<FileLock, Error> {
        let not_found = WorkspaceError::NotFound { id: id.to_owned() };
        on_thread("lock the workspace", move || {
            let lock = FileLock::wait(&folder.changes_lock());
            let lock = lock.map_err(Error::host("lock the workspace"))?;
            lock.ok_or(not_found.into())
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
            if record.run.is_some() {
                folder.wait_for_vmm(&record);
            }
            folder.repair(&mut record)?;
        }
        Ok(Self {
            folder,
            record,
            owner,
            changes,
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
            changes,
        })
    }

    /// A workspace whose locks another process has given to this one.
    pub(super) fn inherited(
        folder: Folder,
        record: Record,
        changes: FileLock,
        owner: FileLock,
    ) -> Self {
        Self {
            folder,
            record,
            owner: Some(owner),
            changes,
        }
    }

    /// Returns both locks: of changes, and the right to run its VM.
    pub(super) fn into_locks(self) -> Result<[FileLock; 2], Error> {
        match self.owner {
            Some(owner) => Ok([self.changes, owner]),
            None => Err(Error::Invalid(
                "another program runs the workspace".to_owned(),
            )),
        }
    }

    /// Returns its state.
    pub(super) fn state(&self) -> WorkspaceState {
        match (&self.owner, &self.record.pause) {
            (None, _) => WorkspaceState::Running,
            (Some(_), None) => WorkspaceState::Stopped,
            (Some(_), Some(_)) => WorkspaceState::Paused,
        }
    }

    /// Lets others change it, and returns the right to run its VM.
    pub(super) fn into_owner(self) -> Result<(Folder, FileLock), Error> {
        let folder = self.folder.clone();
        let [_changes, owner] = self.into_locks()?;
        Ok((folder, owner))
    }

    /// Records that somebody is about to end its VM.
    pub(super) fn mark_ending(&mut self) -> Result<(), Error> {
        self.record.set_ending(true);
        self.write()
    }

    /// Records that nobody is about to end its VM any more.
    pub(super) fn unmark_ending(&mut self) {
        self.record.set_ending(false);
        self.write_if_possible();
    }

    /// Records that somebody is about to pause it.
    pub(super) fn set_next_pause(&mut self, pause: PauseRecord) -> Result<(), Error> {
        if let Some(run) = &mut self.record.run {
            run.next_pause = Some(pause);
        }
        self.write()
    }

    /// Records that nobody is about to pause it any more.
    pub(super) fn clear_next_pause(&mut self) {
        if let Some(run) = &mut self.record.run {
            run.next_pause = None;
        }
        self.write_if_possible();
    }

    /// Waits until the program that ran its VM has given the right back, or has died.
    pub(super) async fn wait_for_owner(&mut self) -> Result<(), Error> {
        if self.owner.is_none() {
            self.owner = self.folder.wait_for_owner().await?;
            let (folder, record) = (self.folder.clone(), self.record.clone());
            on_thread("wait for the VMM", move || {
                folder.wait_for_vmm(&record);
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Same as [`wait_for_owner`](Self::wait_for_owner), and finishes or undoes what that
    /// program has left undone.
    pub(super) async fn take_over(&mut self) -> Result<(), Error> {
        self.wait_for_owner().await?;
        self.folder.repair(&mut self.record)
    }

    /// Fails unless its disk is as its last VM has left it.
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

    /// Writes the record, unless the disk is full or the like. For what the next one that
    /// uses the workspace finds out by itself.
    pub(super) fn write_if_possible(&self) {
        self.warn_unless(self.write());
    }

    /// Writes the record, which says how its VM has ended. The next one that uses the
    /// workspace does not find out why.
    pub(super) fn write_end(&self) {
        self.warn_unless(self.folder.write_end(&self.record));
    }

    fn warn_unless(&self, written: Result<(), Error>) {
        if let Err(error) = written {
            let id = &self.record.id;
            tracing::warn!(error = error.with_causes(), id, "cannot record a change");
        }
    }
}
