//! The VM of a workspace, in the program that runs it.

use std::time::Duration;

use tokio::{task::JoinHandle, time::sleep};

use super::{
    Workspace, Workspaces, blank,
    deadlines::{self, Due},
    folder::Folder,
    lock::FileLock,
    locked::Locked,
    merge::shorten_chain,
    record::{Record, RunRecord},
    services,
};
use crate::{
    Vm,
    error::Error,
    on_thread::on_thread,
    vm::{VmBuilder, VmEnd},
};

/// The VM of a workspace that this program runs. It goes on when this is dropped, until it
/// is stopped or this program ends.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) vm: Vm,
    watching: JoinHandle<()>,
}

/// Starts the VM of a workspace that is stopped or paused, and records it.
pub(super) async fn start(locked: Locked) -> Result<Running, Error> {
    let mut locked = shorten_chain(locked).await?;
    let before = locked.record.clone();
    let run = RunRecord::new();
    locked.record.run = Some(run.clone());
    locked.record.last_activity = run.began;
    // As soon as the VM writes to the disk, the memory does not fit it any more. If it does
    // not even start, it is still paused, also if there is no room to write that then.
    let pause = locked.record.pause.take();
    let paused = match &pause {
        Some(_) => Some(locked.folder.prepare(&before)?),
        None => None,
    };
    locked.write()?;
    let vm = builder(&locked.folder, &locked.record);
    let vm = match &pause {
        Some(_) => vm.snapshot(locked.folder.memory()),
        None => vm,
    };
    let started = match vm.start().await {
        Ok(vm) => blank::finish(vm, &mut locked).await,
        failed => failed,
    };
    match started {
        Ok(vm) => {
            locked.folder.remove_memory_later();
            if let Some(pause) = pause {
                services::publish_again(&vm, &pause.ports).await;
            }
            Running::new(vm, locked, run)
        }
        Err(error) => {
            let error = locked.folder.explain(error);
            locked.record.ended(&format!("it did not start: {error}"));
            // Nothing has run.
            locked.record.pause = pause;
            if locked.write().is_err()
                && let Some(paused) = paused
            {
                locked.folder.commit(paused)?;
            }
            Err(error)
        }
    }
}

/// Returns the VM of a workspace.
pub(super) fn builder(folder: &Folder, record: &Record) -> VmBuilder {
    configure(record.specification.vm(), folder, record)
}

/// Gives a VM the names and the disk of a workspace.
pub(super) fn configure(vm: VmBuilder, folder: &Folder, record: &Record) -> VmBuilder {
    let vm = vm.id(&record.id).hostname(&record.id);
    let vm = vm.disk(folder.layer(record.layers.top()));
    let folders = folder.backing_folders(record).into_iter();
    folders.fold(vm, VmBuilder::allow_backing)
}

impl Running {
    /// Keeps the VM running until it ends, and records that, unless somebody else has.
    pub(super) fn new(vm: Vm, locked: Locked, run: RunRecord) -> Result<Self, Error> {
        let id = locked.record.id.clone();
        // Programs of a VM that was paused may have them.
        vm.hide_secrets(&locked.folder.secrets().read_all())?;
        locked.folder.set_room_aside();
        let (folder, owner) = locked.into_owner()?;
        let workspace = Workspace::new(Workspaces::around(&folder), id);
        let watched = vm.clone();
        let watching = tokio::spawn(async move {
            let mut change = None;
            let end = watch(&watched, &folder, workspace, &mut change).await;
            // Who has stopped it waits for this.
            drop(owner);
            if let Some(change) = change {
                // Fails only if it panics.
                let _ = change.await;
            }
            let recording = on_thread("record the end of a workspace", move || {
                record_end(&folder, &run, end)
            });
            if let Err(error) = recording.await {
                tracing::warn!(%error, "cannot record the end of a workspace");
            }
        });
        Ok(Self { vm, watching })
    }

    /// Waits until the VM has ended, or until `stop` does, which stops it.
    pub(super) async fn until_ended(mut self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::select! {
            _ = &mut self.watching => return Ok(()),
            () = stop => {}
        }
        let stopped = self.vm.stop().await;
        // Fails only if the runtime shuts down.
        let _ = self.watching.await;
        stopped
    }
}

/// Waits until the VM has ended, and pauses or deletes the workspace when that is due.
/// `change` is what is done with it: it waits for the end of the VM, too.
async fn watch(
    vm: &Vm,
    folder: &Folder,
    workspace: Workspace,
    change: &mut Option<JoinHandle<()>>,
) -> VmEnd {
    let mut known_traffic = None;
    loop {
        let traffic = vm.link_traffic();
        if traffic.is_some() && traffic != known_traffic {
            known_traffic = traffic;
            folder.touch();
        }
        let wait = match deadlines::due_now(folder) {
            None => return vm.ended().await,
            Some(Err(wait)) => wait,
            // It is not known whether somebody uses it.
            Some(Ok(Due::Pause)) if traffic.is_none() => LEAST_WAIT,
            Some(Ok(due)) => {
                let workspace = workspace.clone();
                let changing = change.insert(tokio::spawn(async move {
                    let changed = match due {
                        Due::Delete => workspace.delete_expired().await.map(drop),
                        Due::Pause => workspace.pause_if_idle().await,
                    };
                    if let Err(error) = changed {
                        tracing::warn!(%error, ?due, "cannot change a workspace");
                    }
                }));
                tokio::select! {
                    end = vm.ended() => return end,
                    _ = changing => *change = None,
                }
                RETRY
            }
        };
        tokio::select! {
            end = vm.ended() => return end,
            () = sleep(wait.max(LEAST_WAIT)) => {}
        }
    }
}

/// How long to wait after a workspace could not be paused or deleted.
const RETRY: Duration = Duration::from_secs(10);

/// The shortest time between two looks.
const LEAST_WAIT: Duration = Duration::from_millis(200);

fn record_end(folder: &Folder, run: &RunRecord, end: VmEnd) -> Result<(), Error> {
    let lock = FileLock::wait(&folder.changes_lock());
    // Whoever deletes the workspace removes it.
    let Ok(Some(_lock)) = lock else {
        return Ok(());
    };
    let Some(mut record) = folder.read()? else {
        return Ok(());
    };
    if record.run.as_ref().is_some_and(|it| it.began == run.began) {
        folder.end_run(&mut record, &end.reason.to_string());
        folder.write_end(&record)?;
    } else if record.run.is_none() {
        // Whoever has paused or stopped it has written that.
        let _ = folder.give_room_back();
    }
    Ok(())
}
