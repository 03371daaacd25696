//! What is done with a VM while nothing in it moves.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::Instant;

use super::{freeze, pauser::PauseControl, state::Event};
use crate::{backend::VmmControl, error::Error, session::Session};

/// What was done with a VM that stood still.
#[derive(Debug)]
pub(super) struct Standstill<T> {
    /// With how long its processors stood still.
    pub(super) result: Result<(T, Duration), Error>,
    /// What has become of the VM.
    pub(super) event: Option<Event>,
}

/// How a VM stands still.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandstillOptions {
    /// Whether it is paused already.
    pub(super) is_paused: bool,
    /// Whether it is paused afterwards, if all goes well.
    pub(super) stay_paused: bool,
    /// Whether all that its processes have written must be on the disk.
    pub(super) sync: bool,
}

/// Runs something while the processes of the guest are frozen and its processors stand
/// still. The VM goes on afterwards, unless it was paused before or is to stay so.
pub(super) async fn at_standstill<T: Send + 'static>(
    control: &PauseControl,
    options: StandstillOptions,
    run: impl FnOnce(&mut dyn VmmControl) -> Result<T, Error> + Send + 'static,
) -> Standstill<T> {
    let StandstillOptions {
        is_paused,
        stay_paused,
        ..
    } = options;
    if !is_paused {
        control.session.pause(false);
    }
    let started = match stand_still(control, options).await {
        Ok(started) => started,
        Err(error) => {
            let resumed = match is_paused {
                false => control.resume().await,
                true => Ok(()),
            };
            return Standstill {
                result: Err(error),
                event: resumed.is_err().then_some(Event::Paused),
            };
        }
    };
    let done = control.on_vmm(run).await;
    let stays_paused = is_paused || (stay_paused && done.is_ok());
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
    Standstill {
        result: resumed.and(done).map(|done| (done, pause)),
        event,
    }
}

/// Freezes the processes of the guest, and stops its processors. Returns when these
/// were stopped.
async fn stand_still(
    control: &PauseControl,
    StandstillOptions {
        is_paused, sync, ..
    }: StandstillOptions,
) -> Result<Instant, Error> {
    if control.is_frozen.load(Ordering::Relaxed) {
        // It stood still in this pause already. QEMU saves a VM again only if it has run.
        control.on_vmm(|vmm| vmm.resume()).await?;
        let synced = sync_if(sync, &control.session).await;
        let started = Instant::now();
        control.on_vmm(|vmm| vmm.pause()).await?;
        return synced.map(|()| started);
    }
    // Only a guest that runs can freeze its processes.
    if is_paused {
        control.on_vmm(|vmm| vmm.resume()).await?;
    }
    let frozen = freeze(&control.session, sync).await;
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

async fn freeze(session: &Session, sync: bool) -> Result<(), Error> {
    // Most of it while they run, so that they stand still only for the rest.
    sync_if(sync, session).await?;
    freeze::freeze(session).await?;
    sync_if(sync, session).await
}

async fn sync_if(wanted: bool, session: &Session) -> Result<(), Error> {
    match wanted {
        true => freeze::sync(session).await,
        false => Ok(()),
    }
}
