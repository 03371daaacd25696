//! Saves a VM into the folder of a snapshot.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::{sync::oneshot, time::Instant};

use super::{
    freeze,
    pauser::{Done, PauseControl},
    state::Event,
};
use crate::{backend::SavedVm, error::Error, snapshot::PartialSnapshot};

/// A request to save the VM.
#[derive(Debug)]
pub(super) struct SaveJob {
    /// Where its files are written. It is kept here, so that it is not removed while it is
    /// written.
    pub(super) snapshot: PartialSnapshot,
    /// Whether the VM is paused afterwards.
    pub(super) stay_paused: bool,
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
        saved: reply,
    } = job;
    if !is_paused {
        control.session.pause(false);
    }
    let started = match stand_still(control, is_paused).await {
        Ok(started) => started,
        Err(error) => {
            let resumed = match is_paused {
                false => control.resume().await,
                true => Ok(()),
            };
            return Done {
                result: Err(error),
                event: resumed.is_err().then_some(Event::Paused),
            };
        }
    };
    let folder = snapshot.folder().to_owned();
    control.was_saved.store(true, Ordering::Relaxed);
    let saved = control.on_vmm(move |vmm| vmm.save(&folder)).await;
    let stays_paused = is_paused || (stay_paused && saved.is_ok());
    let resumed = match stays_paused {
        true => Ok(()),
        false => control.on_vmm(|vmm| vmm.resume()).await,
    };
    let pause = started.elapsed();
    let event = (stays_paused || resumed.is_err()).then_some(Event::Paused);
    if stays_paused && !is_paused {
        control.is_paused_by_save.store(true, Ordering::Relaxed);
    }
    if event.is_none() {
        control.go_on().await;
    }
    let saved = resumed.and(saved);
    Done {
        result: saved.map(|vm| {
            // Fails if nobody waits for it any more.
            let _ = reply.send(Saved {
                snapshot,
                vm,
                pause,
            });
        }),
        event,
    }
}

/// Freezes the processes of the guest, and stops its processors. Returns when these
/// were stopped.
async fn stand_still(control: &PauseControl, is_paused: bool) -> Result<Instant, Error> {
    if control.is_frozen.load(Ordering::Relaxed) {
        // It was saved in this pause already. QEMU saves a VM again only if it has run.
        control.on_vmm(|vmm| vmm.resume()).await?;
        let started = Instant::now();
        control.on_vmm(|vmm| vmm.pause()).await?;
        return Ok(started);
    }
    // Only a guest that runs can freeze its processes.
    if is_paused {
        control.on_vmm(|vmm| vmm.resume()).await?;
    }
    let frozen = freeze::freeze(&control.session).await;
    control.is_frozen.store(frozen.is_ok(), Ordering::Relaxed);
    if frozen.is_err() {
        // If the answer came too late, they are frozen all the same.
        freeze::thaw(&control.session).await;
    }
    let started = Instant::now();
    if frozen.is_ok() || is_paused {
        control.on_vmm(|vmm| vmm.pause()).await?;
    }
    frozen.map(|()| started)
}
