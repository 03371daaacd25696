//! Saves a VM into the folder of a snapshot.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::sync::oneshot;

use super::{
    pauser::{Done, PauseControl},
    standstill::{Standstill, StandstillOptions, at_standstill},
};
use crate::{
    backend::{SavedVm, VmmControl},
    snapshot::PartialSnapshot,
};

/// A request to save the VM.
#[derive(Debug)]
pub(super) struct SaveJob {
    /// Where its files are written. It is kept here, so that it is not removed while it is
    /// written.
    pub(super) snapshot: PartialSnapshot,
    /// Whether the VM is paused afterwards.
    pub(super) stay_paused: bool,
    /// Whether its disk is not saved.
    pub(super) leave_disk: bool,
    /// Where the result is wanted.
    pub(super) saved: oneshot::Sender<Saved>,
}

/// A VM that was saved.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) snapshot: PartialSnapshot,
    pub(super) vm: SavedVm,
    /// How long its processors stood still.
    pub(super) pause: Duration,
}

/// Saves the VM. It goes on afterwards, unless it was paused before or is to be.
pub(super) async fn save(control: &PauseControl, job: SaveJob, is_paused: bool) -> Done {
    let SaveJob {
        snapshot,
        stay_paused,
        leave_disk,
        saved: reply,
    } = job;
    let folder = snapshot.folder().to_owned();
    let was_saved = control.was_saved.clone();
    let saving = move |vmm: &mut dyn VmmControl| {
        was_saved.store(true, Ordering::Relaxed);
        match leave_disk {
            true => vmm.save_without_disk(&folder),
            false => vmm.save(&folder),
        }
    };
    let options = StandstillOptions {
        is_paused,
        stay_paused,
        // What is not in the snapshot is on the disk.
        sync: leave_disk,
    };
    let Standstill { result, mut event } = at_standstill(control, options, saving).await;
    let (vm, pause) = match result {
        Ok(saved) => saved,
        Err(error) => {
            return Done {
                result: Err(error),
                event,
            };
        }
    };
    let saved = Saved {
        snapshot,
        vm,
        pause,
    };
    let nobody_waits = reply.send(saved).is_err();
    // Nobody sees a VM paused for a snapshot that nobody wants.
    if nobody_waits && stay_paused && !is_paused && control.resume().await.is_ok() {
        event = None;
    }
    Done {
        result: Ok(()),
        event,
    }
}
