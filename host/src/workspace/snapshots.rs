//! Snapshots of a workspace's disk, and what is done with them.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::{
    BASELINE, NewWorkspace, Workspace, WorkspaceError, WorkspaceInfo, WorkspaceSnapshot,
    WorkspaceState,
    folder::remove_folder,
    id::check_name,
    locked::Locked,
    merge::make_room,
    record::{Record, SnapshotRecord},
    timestamp::Timestamp,
};
use crate::{error::Error, on_thread::on_thread};

impl Workspace {
    /// Takes a snapshot of its disk, running or stopped. The processes of a running one
    /// stand still for an instant, and everything that they have written until then is
    /// in the snapshot.
    ///
    /// # Errors
    /// [`WorkspaceError::SnapshotTaken`], [`Error::Invalid`] if it cannot be a name,
    /// [`WorkspaceError::TooManyLayers`] if the workspace was built on 15 others that are
    /// kept, or runs and must be started again before there can be more, and as for
    /// [`Vm::switch_disk`](crate::Vm::switch_disk).
    ///
    /// # Cancel safety
    /// If the future is dropped, there may or may not be a snapshot.
    pub async fn snapshot(&self, name: &str) -> Result<WorkspaceSnapshot, Error> {
        check_name("snapshot", name)?;
        let mut locked = self.lock().await?;
        if locked.record.snapshot(name).is_some() {
            return Err(WorkspaceError::SnapshotTaken {
                id: self.id().to_owned(),
                name: name.to_owned(),
            }
            .into());
        }
        let vm = self.running_vm(&mut locked).await?;
        let mut locked = make_room(locked).await?;
        let below = locked.record.layers.top();
        let next = locked.record.layers.next();
        let pause = match (vm, locked.state()) {
            (Some(vm), _) => {
                // First, so that nothing is lost that is written to the new layer before
                // the next record.
                locked.record.next_top = Some(next);
                locked.write()?;
                let pause = match vm.switch_disk(locked.folder.layer(next)).await {
                    Ok(pause) => pause,
                    Err(error) => {
                        // Else it is not known whether the VM writes to it.
                        if !locked.folder.layer(next).exists() {
                            locked.record.next_top = None;
                            locked.write_if_possible();
                        }
                        return Err(locked.folder.explain(error));
                    }
                };
                locked.folder.sync_layers()?;
                locked.record.next_top = None;
                locked.record.layers.start_above(below);
                Some(pause)
            }
            (None, WorkspaceState::Paused) => {
                // Its memory fits this layer only.
                return Err(self
                    .wrong_state(WorkspaceState::Paused, "running or stopped: start it first")
                    .into());
            }
            (None, _) => {
                locked.record.layers.start_above(below);
                create_layer(&locked, next).await?;
                None
            }
        };
        let mut snapshot = SnapshotRecord::new(below);
        snapshot.is_blank = locked.record.is_blank;
        snapshot.pause_us = pause.map(|pause| u64::try_from(pause.as_micros()).unwrap_or(u64::MAX));
        let snapshots = &mut locked.record.snapshots;
        snapshots.insert(name.to_owned(), snapshot.clone());
        locked.write()?;
        let bytes = size(&locked.folder.layer(below));
        Ok(WorkspaceSnapshot::new(name, &snapshot, bytes))
    }

    /// Returns its snapshots, the oldest first. The first one is `baseline`: the workspace
    /// as it was created.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`]
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn snapshots(&self) -> Result<Vec<WorkspaceSnapshot>, Error> {
        let folder = self.folder();
        let missing = WorkspaceError::NotFound {
            id: self.id().to_owned(),
        };
        on_thread("read the workspace", move || {
            let record = folder.read()?.ok_or(missing)?;
            let info = |name: &str, snapshot: &SnapshotRecord| {
                let bytes = size(&folder.layer(snapshot.layer));
                WorkspaceSnapshot::new(name, snapshot, bytes)
            };
            let named = record.snapshots.iter();
            let mut list: Vec<_> = named.map(|(name, it)| info(name, it)).collect();
            list.sort_by_key(|snapshot| snapshot.created);
            list.insert(0, info(BASELINE, &record.baseline));
            Ok(list)
        })
        .await
    }

    /// Deletes a snapshot. What others need of it stays.
    ///
    /// # Errors
    /// [`WorkspaceError::NoSnapshot`], [`Error::Invalid`] for the baseline.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be deleted.
    pub async fn delete_snapshot(&self, name: &str) -> Result<(), Error> {
        if name == BASELINE {
            return Err(Error::Invalid(
                "the baseline cannot be deleted: it goes with the workspace".to_owned(),
            ));
        }
        let mut locked = self.lock().await?;
        if locked.record.snapshots.remove(name).is_none() {
            return Err(self.no_snapshot(name));
        }
        locked.record.drop_unneeded_layers();
        finish(locked).await.map(drop)
    }

    /// Makes its disk what it was at a snapshot; `baseline` is the workspace as it was
    /// created. All processes, all that was written since, and its history are gone. A
    /// workspace that
    /// ran runs again afterwards, as one that is [started](Self::start).
    ///
    /// # Errors
    /// [`WorkspaceError::NoSnapshot`], and as for [`start`](Self::start).
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be reset, and may be stopped.
    pub async fn reset(&self, snapshot: &str) -> Result<WorkspaceInfo, Error> {
        let mut locked = self.lock().await?;
        let Some(&SnapshotRecord {
            layer, is_blank, ..
        }) = locked.record.snapshot(snapshot)
        else {
            return Err(self.no_snapshot(snapshot));
        };
        let was_running = locked.state() == WorkspaceState::Running;
        let next = locked.record.layers.next();
        let mut record = locked.record.clone();
        record.layers.start_above(layer);
        record.is_blank = is_blank;
        record.drop_unneeded_layers();
        record.reset_count += 1;
        record.last_reset = Some(Timestamp::now());
        record.last_activity = Timestamp::now();
        record.run = None;
        record.last_end = None;
        // Its memory goes with its processes.
        record.pause = None;
        // Before its VM is ended: it goes on if there is no room for the layer.
        prepare_layer(&locked, next, &record).await?;
        if let Err(error) = self.kill(&mut locked).await {
            locked.folder.remove_unknown_files(&locked.record);
            return Err(error);
        }
        locked.folder.place_layer(next)?;
        locked.record = record;
        let locked = finish(locked).await?;
        let cleared = locked.folder.history().clear();
        cleared.map_err(Error::host("clear the history of the workspace"))?;
        match was_running {
            true => drop(self.workspaces().run(locked).await?),
            false => drop(locked),
        }
        self.info().await
    }

    /// Creates a workspace from a snapshot of this one. It shares the disk with it up to
    /// there, so this takes milliseconds, and is stopped. `change` sets its id, its name
    /// and its labels, and what else is to be different.
    ///
    /// ```no_run
    /// # async fn example(workspace: vmcell::workspace::Workspace) -> Result<(), vmcell::Error> {
    /// workspace.snapshot("built").await?;
    /// for number in 0..3 {
    ///     let name = format!("try-{number}");
    ///     let fork = workspace.fork("built", |new| new.name(name)).await?;
    ///     fork.start().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WorkspaceError::NoSnapshot`], [`WorkspaceError::NameTaken`],
    /// [`WorkspaceError::IdTaken`].
    ///
    /// # Cancel safety
    /// If the future is dropped, there may or may not be a workspace.
    pub async fn fork(
        &self,
        snapshot: &str,
        change: impl FnOnce(NewWorkspace) -> NewWorkspace,
    ) -> Result<Self, Error> {
        let source = self.lock().await?;
        let Some(&SnapshotRecord {
            layer, is_blank, ..
        }) = source.record.snapshot(snapshot)
        else {
            return Err(self.no_snapshot(snapshot));
        };
        let mut new = change(NewWorkspace::like(&source.record));
        new.check_fork(&source.record)?;
        let secrets = std::mem::take(&mut new.secrets);
        let mut record = self.workspaces().record_of(new)?;
        record.seed = source.record.seed.clone();
        record.layers = source.record.layers.fork(layer);
        record.is_blank = is_blank;
        record.baseline = SnapshotRecord::new(layer);
        record.baseline.is_blank = is_blank;
        let target = self.workspaces().add_record(record, secrets).await?;
        let id = target.record.id.clone();
        on_thread("fork the workspace", move || {
            const DOING: &str = "fork the workspace";
            let made = target
                .folder
                .link_layers(&source.folder, source.record.layers.chain(layer))
                .map_err(Error::host(DOING));
            let top = target.record.layers.top();
            let made = made.and_then(|()| target.folder.create_layer(top, &target.record));
            let made = made.and_then(|()| target.write());
            if made.is_err() {
                remove_folder(target.folder.path());
            }
            made
        })
        .await?;
        Ok(Self::new(self.workspaces().clone(), id))
    }
}

/// Creates the file of a layer.
async fn create_layer(locked: &Locked, layer: u32) -> Result<(), Error> {
    let (folder, record) = (locked.folder.clone(), locked.record.clone());
    on_thread("make a layer of the disk", move || {
        folder.create_layer(layer, &record)
    })
    .await
}

/// Creates a layer that has no name yet.
async fn prepare_layer(locked: &Locked, layer: u32, record: &Record) -> Result<(), Error> {
    let (folder, record) = (locked.folder.clone(), record.clone());
    on_thread("make a layer of the disk", move || {
        folder.prepare_layer(layer, &record)
    })
    .await
}

/// Writes the record, and removes the layers that it does not name any more.
async fn finish(locked: Locked) -> Result<Locked, Error> {
    on_thread("change the workspace", move || {
        locked.write()?;
        if locked.record.pause.is_none() {
            locked.folder.remove_memory();
        }
        locked.folder.remove_unknown_files(&locked.record);
        Ok(locked)
    })
    .await
}

/// Returns how much of the disk a file takes.
fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.blocks() * 512)
}
