//! The one task that changes a VM's state.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use vmcell_wire::Request;

use super::{
    start::Kept,
    state::{Action, Event, VmState, step},
};
use crate::{
    door::OpenDoor,
    session::{Session, Stream},
    vmm::Vmm,
};

/// What a handle can ask of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Stop,
    Kill,
}

pub(super) struct Driver {
    pub(super) vmm: Vmm,
    pub(super) kept: Kept,
    pub(super) session: Arc<Session>,
    pub(super) door: Option<OpenDoor>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) state: watch::Sender<VmState>,
}

/// How long processes in the guest may take to react to SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// How long the guest may take to power off.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl Driver {
    /// Runs until the VM has ended. When every handle is gone, the VM is
    /// killed.
    pub(super) async fn run(mut self) {
        let mut lost = self.session.lost();
        let mut link_is_lost = false;
        let mut stop_deadline = None;
        // Held until the end: dropping it would take the request back.
        let mut power_off = None;
        loop {
            let event = tokio::select! {
                biased;
                _ = self.vmm.exited() => Event::VmmExited,
                order = self.orders.recv() => match order {
                    Some(Order::Stop) => Event::StopRequested,
                    Some(Order::Kill) | None => Event::KillRequested,
                },
                () = at(stop_deadline) => Event::StopDeadline,
                () = is_some(&mut lost), if !link_is_lost => {
                    link_is_lost = true;
                    self.grace_after_lost_link().await
                }
            };
            let state = *self.state.borrow();
            let (next, actions) = step(state, event);
            for action in actions {
                match action {
                    Action::AskForPowerOff => power_off = self.ask_for_power_off(),
                    Action::ArmStopDeadline => stop_deadline = Some(Instant::now() + STOP_TIMEOUT),
                    Action::KillVmm => self.vmm.killer().kill(),
                }
            }
            if matches!(next, VmState::Ended(_))
                && let Some(door) = self.door.take()
            {
                // Whoever hears of the end can use the id again.
                door.shut().await;
            }
            if matches!(next, VmState::Ended(_)) {
                self.let_go().await;
            }
            self.state.send_replace(next);
            if let VmState::Ended(end) = next {
                tracing::debug!(%end, "the VM has ended");
                drop(power_off);
                return;
            }
            if matches!(next, VmState::Killing(_)) {
                stop_deadline = None;
            }
        }
    }

    /// Drops what was kept for the VM. Files are removed by that: not for a
    /// thread of the runtime.
    async fn let_go(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        if !kept.is_empty() {
            // It fails only with the runtime, which drops it as well.
            let _ = tokio::task::spawn_blocking(move || drop(kept)).await;
        }
    }

    /// A VMM that dies takes the link with it. Which of the two is noticed
    /// first is chance; the cause is the VMM.
    async fn grace_after_lost_link(&mut self) -> Event {
        const GRACE: Duration = Duration::from_millis(200);
        match tokio::time::timeout(GRACE, self.vmm.is_ending()).await {
            Ok(()) => {
                self.vmm.exited().await;
                Event::VmmExited
            }
            Err(_) => Event::LinkLost,
        }
    }

    fn ask_for_power_off(&self) -> Option<Stream> {
        let grace_ms = u32::try_from(GRACE.as_millis()).unwrap_or(u32::MAX);
        // If the link is lost, the deadline ends the VM.
        self.session.open(&Request::PowerOff { grace_ms }).ok()
    }
}

/// Waits for a value. Nobody looks at it here, and a sender that is gone never
/// sends one.
async fn is_some<T>(receiver: &mut watch::Receiver<Option<T>>) {
    let gone = receiver.wait_for(Option::is_some).await.is_err();
    if gone {
        std::future::pending::<()>().await;
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
