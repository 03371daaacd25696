//! The VM of a workspace, in the program that runs it.

use super::{
    folder::Folder,
    lock::FileLock,
    locked::Locked,
    record::{Record, RunRecord},
    timestamp::Timestamp,
};
use crate::{
    Vm,
    error::Error,
    on_thread::on_thread,
    vm::{VmBuilder, VmEnd},
};

/// Starts the VM of a workspace that is stopped, and records it. It runs until it is
/// stopped, or until this program ends.
pub(super) async fn start(locked: &mut Locked, owner: FileLock) -> Result<Vm, Error> {
    let run = RunRecord {
        began: Timestamp::now(),
    };
    locked.record.run = Some(run.clone());
    locked.record.last_activity = run.began;
    locked.write()?;
    match builder(&locked.folder, &locked.record).start().await {
        Ok(vm) => {
            watch(&vm, owner, locked.folder.clone(), run);
            Ok(vm)
        }
        Err(error) => {
            locked.record.ended(&format!("it did not start: {error}"));
            locked.write()?;
            Err(error)
        }
    }
}

/// Returns the VM of a workspace.
pub(super) fn builder(folder: &Folder, record: &Record) -> VmBuilder {
    let image = folder.image(record);
    let vm = record.specification.vm().id(&record.id);
    let vm = vm.disk(folder.layer(record.layers.top()));
    let vm = vm.allow_backing(folder.path());
    match image.parent() {
        Some(parent) => vm.allow_backing(parent),
        None => vm,
    }
}

/// Keeps the VM running until it ends, and records that, unless somebody else has.
pub(super) fn watch(vm: &Vm, owner: FileLock, folder: Folder, run: RunRecord) {
    let vm = vm.clone();
    tokio::spawn(async move {
        let end = vm.ended().await;
        // Who has stopped it waits for this.
        drop(owner);
        let recording = on_thread("record the end of a workspace", move || {
            record_end(&folder, &run, end)
        });
        if let Err(error) = recording.await {
            tracing::warn!(%error, "cannot record the end of a workspace");
        }
    });
}

fn record_end(folder: &Folder, run: &RunRecord, end: VmEnd) -> Result<(), Error> {
    let doing = "lock the workspace";
    let lock = FileLock::wait(&folder.changes_lock()).map_err(Error::host(doing));
    // Whoever deletes the workspace removes it.
    let Ok(Some(_lock)) = lock else {
        return Ok(());
    };
    let Some(mut record) = folder.read()? else {
        return Ok(());
    };
    if record.run.as_ref() == Some(run) {
        record.ended(&end.reason.to_string());
        folder.write(&record)?;
    }
    Ok(())
}
