use std::sync::{Arc, atomic::AtomicU64};

use super::{
    WorkspaceError, WorkspaceInfo, WorkspaceState, WorkspaceUpdate, Workspaces,
    attached::AttachedVm,
    deadlines::{self, Due},
    folder::Folder,
    lock::FileLock,
    locked::Locked,
    record::PauseRecord,
    services,
    timestamp::Timestamp,
};
use crate::{Vm, error::Error, on_thread::on_thread, snapshot::SnapshotOptions};

/// The state that a request needs, for [`WorkspaceError::State`].
pub(super) const MUST_RUN: &str = "running: start it first";

/// A workspace: see [`workspace`](crate::workspace).
///
/// A handle does not keep the workspace running, and several programs can have one.
#[derive(Clone, Debug)]
pub struct Workspace {
    workspaces: Workspaces,
    id: String,
    attached_vm: AttachedVm,
    /// The number of the last command of its history that is known, or 0.
    last_command: Arc<AtomicU64>,
}

impl Workspace {
    pub(super) fn new(workspaces: Workspaces, id: String) -> Self {
        Self {
            workspaces,
            id,
            attached_vm: AttachedVm::default(),
            last_command: Arc::default(),
        }
    }

    /// Returns its id, which never changes.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn attached_vm(&self) -> &AttachedVm {
        &self.attached_vm
    }

    pub(super) fn last_command(&self) -> Arc<AtomicU64> {
        self.last_command.clone()
    }

    pub(super) fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    pub(super) fn folder(&self) -> Folder {
        self.workspaces.of(&self.id)
    }

    pub(super) async fn lock(&self) -> Result<Locked, Error> {
        let mut locked = Locked::wait(self.folder(), &self.id).await?;
        if locked.state() == WorkspaceState::Running && locked.record.is_ending() {
            // A program has died that was about to end its VM, which may have got the
            // request, and may have ended.
            if let Some(vm) = self.attach().await? {
                match vm.stop().await {
                    Err(error) if !is_gone(&error) => return Err(error),
                    _ => {}
                }
            }
            locked.take_over().await?;
        }
        if locked.state() == WorkspaceState::Running && locked.record.next_pause().is_some() {
            self.finish_pause(&mut locked).await?;
        }
        if locked.state() == WorkspaceState::Running
            && let Some(next) = locked.record.next_top
        {
            self.finish_switch(&mut locked, next).await?;
        }
        Ok(locked)
    }

    /// Finishes what a program has begun that has died: to make the VM write to a new
    /// layer.
    async fn finish_switch(&self, locked: &mut Locked, next: u32) -> Result<(), Error> {
        let path = locked.folder.layer(next);
        // One at a time is carried out. If the first one was, or will be, one of them
        // fails because the layer is there.
        let switched = match self.attach().await? {
            Some(vm) => vm.switch_disk(&path).await.is_ok(),
            None => false,
        };
        if !switched && !path.exists() {
            match self.attach().await? {
                // It goes on in the old one, such as when there is no room for another.
                Some(_) => {
                    locked.record.next_top = None;
                    locked.write_if_possible();
                }
                None => {
                    locked.take_over().await?;
                }
            }
            return Ok(());
        }
        locked.folder.sync_layers()?;
        locked.record.next_top = None;
        locked.record.layers.start_above(locked.record.layers.top());
        locked.write()
    }

    /// Finishes what a program has begun that has died: to pause the workspace.
    async fn finish_pause(&self, locked: &mut Locked) -> Result<(), Error> {
        let saved = match self.attach().await? {
            // One at a time is carried out. If the first one was, the VM has ended.
            Some(vm) => save(&vm, locked).await,
            None => Ok(()),
        };
        match saved {
            // Unless the first one was carried out, and the VM is about to end.
            Err(error) if !is_gone(&error) && !locked.folder.has_memory() => {
                tracing::warn!(%error, "a workspace could not be paused");
                locked.clear_next_pause();
                Ok(())
            }
            _ => locked.take_over().await,
        }
    }

    /// Attaches to its VM, and never to another one with the same id, such as that of a
    /// workspace below another root.
    pub(super) async fn attach_vm(&self) -> Result<Vm, Error> {
        let folder = self.folder();
        Vm::attach_if(&self.id, |disk| folder.contains_layer(disk)).await
    }

    /// Attaches to its VM. `None` if that has just ended.
    pub(super) async fn attach(&self) -> Result<Option<Vm>, Error> {
        match self.attach_vm().await {
            Ok(vm) => Ok(Some(vm)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn not_found(&self) -> WorkspaceError {
        WorkspaceError::NotFound {
            id: self.id.clone(),
        }
    }

    /// Returns its state and all that is known about it.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`]
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn info(&self) -> Result<WorkspaceInfo, Error> {
        let mut info = self.recorded_info().await?;
        services::add_counts(&self.workspaces, std::slice::from_mut(&mut info)).await;
        Ok(info)
    }

    /// As [`info`](Self::info), without what only its VM knows.
    pub(super) async fn recorded_info(&self) -> Result<WorkspaceInfo, Error> {
        let (this, missing) = (self.clone(), self.not_found());
        on_thread("read the workspace", move || {
            let record = this.folder().read()?.ok_or(missing)?;
            Ok(this.workspaces.info(record))
        })
        .await
    }

    /// Starts it, unless it runs. Nothing of it is reset: its disk is as it was when it
    /// was stopped. If it was [paused](Self::pause), its processes go on. Returns its VM.
    ///
    /// If it does not run yet, it runs in this program and stops when that ends, or in the
    /// [keeper](Workspaces::keeper).
    ///
    /// # Errors
    /// As for [`VmBuilder::start`](crate::VmBuilder::start), and
    /// [`WorkspaceError::NotFound`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not run.
    pub async fn start(&self) -> Result<Vm, Error> {
        let mut locked = self.lock().await?;
        if let Some(vm) = self.running_vm(&mut locked).await? {
            return Ok(vm);
        }
        self.workspaces.run(locked).await
    }

    /// Records that somebody uses it, so that it is not paused for want of use.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`]
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn touch(&self) -> Result<(), Error> {
        self.recorded_info().await?;
        self.folder().touch();
        Ok(())
    }

    /// Pauses it, if it runs: its memory is written to the disk, and no process is left.
    /// [`start`](Self::start) lets its processes go on.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] if it is stopped, and as for [`Vm::snapshot_with`]. It
    /// goes on then.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be paused.
    pub async fn pause(&self) -> Result<(), Error> {
        let locked = self.lock().await?;
        match locked.state() {
            WorkspaceState::Paused => Ok(()),
            WorkspaceState::Running => self.pause_locked(locked, false).await,
            state => Err(self.wrong_state(state, MUST_RUN).into()),
        }
    }

    /// Pauses it if nobody uses it.
    pub(super) async fn pause_if_idle(&self) -> Result<(), Error> {
        let locked = self.lock().await?;
        // Somebody may have used it meanwhile.
        match is_idle(&locked) && locked.state() == WorkspaceState::Running {
            true => self.pause_locked(locked, true).await,
            false => Ok(()),
        }
    }

    async fn pause_locked(&self, mut locked: Locked, is_automatic: bool) -> Result<(), Error> {
        let Some(vm) = self.running_vm(&mut locked).await? else {
            return Err(self.wrong_state(locked.state(), MUST_RUN).into());
        };
        // Of an earlier attempt.
        locked.folder.remove_memory();
        let services = services::count(&locked.folder, &self.id)
            .await
            .unwrap_or_default();
        let ports = vm.service_ports().await;
        locked.set_next_pause(PauseRecord {
            began: Timestamp::now(),
            is_automatic,
            services: services.total,
            ports,
        })?;
        // Who uses it from now on sees that it is being paused, and waits.
        if is_automatic && !is_idle(&locked) {
            locked.clear_next_pause();
            return Ok(());
        }
        if let Err(error) = save(&vm, &locked).await {
            locked.clear_next_pause();
            return Err(error);
        }
        locked.take_over().await
    }

    /// Stops it, if it runs. Its disk, its snapshots and its history are kept. Processes of
    /// one that is paused do not go on any more.
    ///
    /// # Errors
    /// [`Error::Gone`] if it could not be stopped cleanly, so that its disk may lack the
    /// last writes; [`WorkspaceError::NotFound`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not stop.
    pub async fn stop(&self) -> Result<(), Error> {
        let mut locked = self.lock().await?;
        match locked.state() {
            WorkspaceState::Stopped => return Ok(()),
            WorkspaceState::Running => {}
            WorkspaceState::Paused => {
                locked.record.pause = None;
                locked.record.ended("stopped while it was paused");
                let written = locked.write();
                locked.folder.remove_memory();
                // If there was no room before, there is now.
                return written.or_else(|_| locked.write());
            }
        }
        let Some(vm) = self.attach().await? else {
            locked.wait_for_owner().await?;
            // Its program would record how, and only after this has returned.
            locked.record.ended("it ended before it could be stopped");
            locked.write_end();
            return Ok(());
        };
        // It must be possible to stop it, also if the disk of the host is full.
        if let Err(error) = locked.mark_ending() {
            tracing::warn!(%error, id = self.id, "cannot record that a workspace stops");
        }
        let stopped = vm.stop().await;
        let reason = match &stopped {
            Ok(()) => "stopped".to_owned(),
            Err(Error::Gone(end)) => end.to_string(),
            Err(_) => {
                locked.unmark_ending();
                return stopped;
            }
        };
        locked.wait_for_owner().await?;
        locked.record.ended(&reason);
        locked.write_end();
        stopped
    }

    /// Ends its VM at once, if it runs.
    pub(super) async fn kill(&self, locked: &mut Locked) -> Result<(), Error> {
        if locked.state() != WorkspaceState::Running {
            return Ok(());
        }
        if let Some(vm) = self.attach().await? {
            locked.mark_ending()?;
            vm.kill().await?;
        }
        locked.wait_for_owner().await
    }

    /// Deletes it, with its disk, its snapshots and its history. If it runs, its VM is
    /// ended at once. It can also be deleted if its files are damaged, or if the disk of
    /// the host is full.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`], [`Error::Host`] if its files cannot be removed.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be deleted.
    pub async fn delete(self) -> Result<(), Error> {
        let changes = Locked::wait_for_changes(self.folder(), &self.id).await?;
        self.delete_locked(changes).await
    }

    /// Deletes it if its time is over. Returns whether it was: it may be another one by now
    /// that got the same id.
    pub(super) async fn delete_expired(self) -> Result<bool, Error> {
        let changes = Locked::wait_for_changes(self.folder(), &self.id).await?;
        let expires = self.folder().read()?.and_then(|record| record.expires);
        let is_expired = expires.is_some_and(|it| it <= Timestamp::now());
        if is_expired {
            self.delete_locked(changes).await?;
        }
        Ok(is_expired)
    }

    async fn delete_locked(self, changes: FileLock) -> Result<(), Error> {
        let folder = self.folder();
        if folder.is_owned() {
            if let Some(vm) = self.attach().await? {
                folder.mark_ending();
                vm.kill().await?;
            }
            folder.wait_for_owner().await?;
        }
        on_thread("delete the workspace", move || {
            let _lock = self.workspaces.lock()?;
            let removed = self.workspaces.remove(&folder, &self.id);
            drop(changes);
            removed.map_err(Error::host("delete the workspace"))
        })
        .await
    }

    /// Sets that it is deleted by itself after so long from now on. Returns when that is.
    #[cfg(feature = "tool")]
    pub(crate) async fn expire_after(
        &self,
        time: std::time::Duration,
    ) -> Result<std::time::SystemTime, Error> {
        let mut locked = self.lock().await?;
        let expires = std::time::SystemTime::now().checked_add(time);
        let expires =
            expires.ok_or_else(|| Error::Invalid("it would be kept for ever".to_owned()))?;
        locked.record.expires = Some(Timestamp::of(expires));
        on_thread("change the workspace", move || locked.write()).await?;
        Ok(expires)
    }

    /// Changes its name or its labels, and nothing else.
    ///
    /// # Errors
    /// [`WorkspaceError::NameTaken`], [`Error::Invalid`] if it cannot be a name,
    /// [`WorkspaceError::NotFound`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be changed.
    pub async fn update(&self, update: WorkspaceUpdate) -> Result<WorkspaceInfo, Error> {
        update.check()?;
        let mut locked = self.lock().await?;
        let this = self.clone();
        let changing = on_thread("change the workspace", move || {
            let record = &mut locked.record;
            let lock = this.workspaces.lock()?;
            if let Some(name) = update.new_name() {
                this.workspaces.check_name_is_free(name, &record.id)?;
            }
            update.apply_to(&mut record.name, &mut record.labels);
            locked.write()?;
            drop(lock);
            Ok(this.workspaces.info(locked.record.clone()))
        });
        let mut info = changing.await?;
        services::add_counts(&self.workspaces, std::slice::from_mut(&mut info)).await;
        Ok(info)
    }

    pub(super) fn wrong_state(
        &self,
        state: WorkspaceState,
        needed: &'static str,
    ) -> WorkspaceError {
        WorkspaceError::State {
            id: self.id.clone(),
            state,
            needed,
        }
    }
}

/// Returns whether nobody has used a workspace for so long that it is to be paused.
fn is_idle(locked: &Locked) -> bool {
    deadlines::due_now(&locked.folder) == Some(Ok(Due::Pause))
}

/// Returns whether an error says that a VM has ended.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Gone(_) | Error::NoSuchVm { .. })
}

/// Writes the memory of a VM to the disk, and ends it.
async fn save(vm: &Vm, locked: &Locked) -> Result<(), Error> {
    let options = SnapshotOptions::new().leave_disk(true);
    let saving = vm.snapshot_with(locked.folder.memory(), options);
    saving.await.map(drop)
}
