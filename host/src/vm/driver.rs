//! The task that drives a VM's state. No other task changes it.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use super::{
    End,
    pauser::{Change, PauseRequest, Pauser},
    power_off::{self, STOP_TIMEOUT},
    start::HeldResources,
    state::{Action, Event, Report, VmState, VmmExit, step},
};
use crate::{
    attach::AttachServer,
    error::Error,
    session::{Route, Session, Stream},
    vmm::Vmm,
};

/// What a handle can request of the driver.
pub(super) enum DriverRequest {
    Stop,
    Kill,
    Pause(PauseRequest),
}

/// Has the driver make a change.
pub(super) async fn change(
    requests: &mpsc::UnboundedSender<DriverRequest>,
    change: Change,
) -> Result<(), Error> {
    let (reply, replied) = oneshot::channel();
    let reply = Some(reply);
    // Fails only if the driver has ended, and the VM with it.
    let _ = requests.send(DriverRequest::Pause(PauseRequest { change, reply }));
    replied.await.unwrap_or(Err(Error::Gone(End::Died)))
}

pub(super) struct Driver {
    pub(super) vmm: Vmm,
    pub(super) resources: HeldResources,
    pub(super) session: Arc<Session>,
    pub(super) pauser: Pauser,
    pub(super) attach_server: Option<AttachServer>,
    pub(super) requests: mpsc::UnboundedReceiver<DriverRequest>,
    pub(super) state: watch::Sender<VmState>,
    /// How to stop a VM whose disk is kept when the runtime is gone. `None` if
    /// the VM is killed then, and when every handle is dropped.
    pub(super) stop_route: Option<Route>,
}

impl Driver {
    /// Runs until the VM has ended. When every handle is dropped, stops the VM
    /// if its disk is kept, and kills it if not.
    pub(super) async fn run(mut self) {
        let mut link_error = self.session.link_error();
        let mut link_is_lost = false;
        let mut has_handles = true;
        let mut stop_deadline = None;
        // Held until the end: dropping it would cancel the request.
        let mut power_off: Option<Stream> = None;
        let mut report = Report::Missing;
        loop {
            let state = *self.state.borrow();
            self.pauser.start_next(state);
            let exited = tokio::select! {
                biased;
                status = self.vmm.exited() => Ok(status),
                request = self.requests.recv(), if has_handles => Err(match request {
                    Some(DriverRequest::Stop) => Event::StopRequested,
                    Some(DriverRequest::Kill) => Event::KillRequested,
                    Some(DriverRequest::Pause(request)) => {
                        self.pauser.add(request);
                        continue;
                    }
                    None => {
                        has_handles = false;
                        match self.stop_route {
                            Some(_) => Event::StopRequested,
                            None => Event::KillRequested,
                        }
                    }
                }),
                event = self.pauser.next_event() => match event {
                    Some(event) => Err(event),
                    None => continue,
                },
                () = sleep_until_deadline(stop_deadline) => Err(Event::StopDeadline),
                reported = next_report(&mut power_off), if report == Report::Missing => {
                    report = reported;
                    if reported == Report::Missing {
                        power_off = None;
                    }
                    continue;
                }
                () = wait_until_some(&mut link_error), if !link_is_lost => {
                    link_is_lost = true;
                    self.vmm_exit_after_lost_link().await.ok_or(Event::LinkLost)
                }
            };
            let event = match exited {
                Err(event) => event,
                Ok(status) => {
                    if let (Report::Missing, Some(stream)) = (report, &mut power_off) {
                        report = power_off::last_report(power_off::report(stream)).await;
                    }
                    Event::VmmExited(VmmExit {
                        status,
                        report,
                        has_used_cpu_time: self.vmm.has_used_cpu_time(),
                    })
                }
            };
            let state = *self.state.borrow();
            let (next, actions) = step(state, event);
            for action in actions {
                match action {
                    // If the link is lost, the deadline ends the VM.
                    Action::PowerOff if power_off.is_none() => {
                        power_off = power_off::request(&self.session).ok();
                    }
                    Action::PowerOff => {}
                    Action::ArmStopDeadline => stop_deadline = Some(Instant::now() + STOP_TIMEOUT),
                    Action::KillVmm => self.vmm.killer().kill(),
                    Action::Resume => self.pauser.add(PauseRequest {
                        change: Change::Resume,
                        reply: None,
                    }),
                }
            }
            if let VmState::Ended(end) = next {
                if let Some(attach_server) = self.attach_server.take() {
                    // Releases the id before the end is reported.
                    attach_server.shut_down(end).await;
                }
                self.release_resources().await;
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

    /// Drops the resources held for the VM. That removes files, so it does not
    /// run on a thread of the runtime.
    async fn release_resources(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        if !resources.is_empty() {
            // Fails only if the runtime shuts down, which drops them as well.
            let _ = tokio::task::spawn_blocking(move || drop(resources)).await;
        }
    }

    /// Waits a moment for the VMM to exit after the link is lost. A VMM that dies
    /// closes the link, and either may be noticed first; the cause is the VMM.
    /// Returns `None` if it does not exit.
    async fn vmm_exit_after_lost_link(&mut self) -> Option<Option<ExitStatus>> {
        const GRACE: Duration = Duration::from_millis(200);
        tokio::time::timeout(GRACE, self.vmm.any_exited())
            .await
            .ok()?;
        Some(self.vmm.exited().await)
    }
}

impl Drop for Driver {
    /// Runs when the runtime shuts down. Stops a VM whose disk is kept, which
    /// blocks; others are killed with their [`Vmm`].
    fn drop(&mut self) {
        let state = *self.state.borrow();
        if let (VmState::Running | VmState::Paused | VmState::Stopping, Some(route)) =
            (state, &self.stop_route)
        {
            if self.session.pauses().is_paused() {
                self.pauser.resume_blocking();
            }
            let boot_id = self.session.peer().boot_id;
            let end = power_off::stop_blocking(route, boot_id, &mut self.vmm);
            if let Some(end) = end {
                tracing::debug!(%end, "the VM has ended with its runtime");
                self.state.send_replace(VmState::Ended(end));
            }
        }
    }
}

/// Waits for the agent's report on a power-off, or forever if there is none.
async fn next_report(power_off: &mut Option<Stream>) -> Report {
    match power_off {
        Some(stream) => power_off::report(stream).await,
        None => std::future::pending().await,
    }
}

/// Waits until there is a value, or forever if the sender is dropped.
async fn wait_until_some<T>(receiver: &mut watch::Receiver<Option<T>>) {
    let gone = receiver.wait_for(Option::is_some).await.is_err();
    if gone {
        std::future::pending::<()>().await;
    }
}

async fn sleep_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
