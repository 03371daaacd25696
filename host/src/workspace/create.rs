//! New workspaces.

use super::{
    NewWorkspace, Workspace, Workspaces, blank, first_boot,
    folder::{Folder, remove_folder},
    keeper_messages::KeeperTask,
    lock::FileLock,
    locked::Locked,
    record::Record,
    secrets,
    seed::{OnSeed, SeedProgress},
};
use crate::{error::Error, on_thread::on_thread, secret::Secret};

impl Workspaces {
    /// Creates a workspace, and starts it. When this returns, it is filled and can be
    /// used, also by other programs.
    ///
    /// # Errors
    /// [`Error::Workspace`] if its id or name is taken, [`Error::BadFile`] if its image or seed
    /// cannot be used, and as for [`VmBuilder::start`](crate::VmBuilder::start). Nothing is
    /// left behind.
    ///
    /// # Cancel safety
    /// If the future is dropped, there may or may not be a workspace. What was begun is
    /// removed by the next call.
    pub async fn create(&self, new: NewWorkspace) -> Result<Workspace, Error> {
        self.create_seeded(new, None).await
    }

    /// As [`create`](Self::create), and calls `on_seed` every now and then while its seed
    /// is copied.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    ///
    /// # Cancel safety
    /// As for [`create`](Self::create).
    pub async fn create_with_progress(
        &self,
        new: NewWorkspace,
        on_seed: impl Fn(SeedProgress) + Send + 'static,
    ) -> Result<Workspace, Error> {
        self.create_seeded(new, Some(Box::new(on_seed))).await
    }

    async fn create_seeded(
        &self,
        mut new: NewWorkspace,
        on_seed: OnSeed,
    ) -> Result<Workspace, Error> {
        let (seed, is_warm) = (new.check()?, new.is_warm);
        let locked = self.add(new).await?;
        let id = locked.record.id.clone();
        match &self.keeper {
            None => drop(first_boot::create(locked, seed, is_warm, on_seed).await?),
            Some(keeper) => {
                let record = Box::new(locked.record.clone());
                let task = KeeperTask::Create {
                    record,
                    seed,
                    is_warm,
                    tells_progress: on_seed.is_some(),
                };
                if let Err(error) = keeper.start(locked, task, on_seed).await {
                    // A keeper that was killed could not do it.
                    self.remove_abandoned(id).await?;
                    return Err(error);
                }
            }
        }
        Ok(Workspace::new(self.clone(), id))
    }

    /// Creates a workspace that is stopped, in milliseconds: nothing is booted. Its baseline
    /// is its image. `/workspace` is made when it starts for the first time.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell::Error> {
    /// use vmcell::workspace::{NewWorkspace, Workspaces};
    ///
    /// let workspaces = Workspaces::open()?;
    /// let workspace = workspaces.create_stopped(NewWorkspace::new("base.ext4")).await?;
    /// workspace.start().await?; // when it is needed
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Workspace`] if its id or name is taken, [`Error::BadFile`] if its image
    /// cannot be used, [`Error::Invalid`] if it has a seed or cannot have such a VM. Nothing
    /// is left behind. That its [user](NewWorkspace::user) does not exist is found when it
    /// starts.
    ///
    /// # Cancel safety
    /// If the future is dropped, there may or may not be a workspace.
    pub async fn create_stopped(&self, mut new: NewWorkspace) -> Result<Workspace, Error> {
        if new.check()?.is_some() {
            return Err(Error::Invalid(
                "a workspace that is created stopped cannot be seeded, because no VM runs that \
                 could write to its disk: create it started, or copy the files into it when it \
                 has been started"
                    .to_owned(),
            ));
        }
        let locked = self.add(new).await?;
        let id = locked.record.id.clone();
        on_thread("make the workspace", move || blank::create(locked)).await?;
        Ok(Workspace::new(self.clone(), id))
    }

    /// Returns the record of a new workspace.
    pub(super) fn record_of(&self, new: NewWorkspace) -> Result<Record, Error> {
        new.into_record(&self.id_prefix)
    }

    /// Removes what the keeper of a workspace has left behind that could not create it.
    async fn remove_abandoned(&self, id: String) -> Result<(), Error> {
        let this = self.clone();
        on_thread("remove the workspace", move || {
            // A keeper that has ended may still have the lock for a moment.
            drop(FileLock::wait(&this.of(&id).changes_lock()));
            let _lock = this.lock()?;
            this.sweep();
            Ok(())
        })
        .await
    }

    /// Makes the folder of a workspace that nobody sees yet.
    async fn add(&self, mut new: NewWorkspace) -> Result<Locked, Error> {
        let secrets = std::mem::take(&mut new.secrets);
        self.add_record(self.record_of(new)?, secrets).await
    }

    /// As [`add`](Self::add), for a workspace with this record and these secrets.
    pub(super) async fn add_record(
        &self,
        record: Record,
        secrets: Vec<Secret>,
    ) -> Result<Locked, Error> {
        let this = self.clone();
        on_thread("make the workspace", move || {
            let _lock = this.lock()?;
            // First: a program that has died may have reserved the name.
            this.sweep();
            this.check_id_is_free(&record.id)?;
            if let Some(name) = &record.name {
                this.check_name_is_free(name, &record.id)?;
            }
            let path = this.folder.join(&record.id);
            let (folder, changes) = Folder::create(path.clone())?;
            // Others see its name from now on.
            let reserved = folder.reserve(record.name.as_deref());
            let filled = reserved.and_then(|()| secrets::write_first(&folder, &secrets));
            let locked = filled.and_then(|()| Locked::new(folder, record, changes));
            locked.inspect_err(|_| remove_folder(&path))
        })
        .await
    }
}
