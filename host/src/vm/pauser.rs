use std::{
    collections::VecDeque,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
};

use super::{VmEnd, VmState, WhilePaused, clock, state::Event};
use crate::{
    backend::{Feature, VmmControl},
    error::Error,
    session::Session,
};

/// Pauses and resumes a VM, one request after the other.
pub(super) struct Pauser {
    /// `None` if the backend cannot do it.
    control: Option<SharedControl>,
    backend: String,
    session: Arc<Session>,
    waiting: VecDeque<PauseRequest>,
    current: Option<Operation>,
}

type SharedControl = Arc<Mutex<Box<dyn VmmControl>>>;

/// A request to pause or resume the VM.
pub(super) struct PauseRequest {
    pub(super) change: Change,
    /// Where the result is wanted.
    pub(super) reply: Option<oneshot::Sender<Result<(), Error>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Pause(WhilePaused),
    Resume,
}

/// What is being done.
struct Operation {
    request: PauseRequest,
    task: JoinHandle<Result<(), Error>>,
}

impl PauseRequest {
    fn reply(self, result: Result<(), Error>) {
        match (self.reply, result) {
            // Fails if nobody waits for it any more.
            (Some(reply), result) => drop(reply.send(result)),
            (None, Err(error)) => tracing::warn!(%error, "a VM cannot be resumed to be stopped"),
            (None, Ok(())) => {}
        }
    }
}

impl Pauser {
    pub(super) fn new(
        control: Option<Box<dyn VmmControl>>,
        backend: String,
        session: Arc<Session>,
    ) -> Self {
        Self {
            control: control.map(|control| Arc::new(Mutex::new(control))),
            backend,
            session,
            waiting: VecDeque::new(),
            current: None,
        }
    }

    pub(super) fn add(&mut self, request: PauseRequest) {
        self.waiting.push_back(request);
    }

    /// Starts what is to be done next in this state, unless something is being done.
    pub(super) fn start_next(&mut self, state: VmState) {
        while self.current.is_none()
            && let Some(request) = self.waiting.pop_front()
        {
            self.start(request, state);
        }
    }

    fn start(&mut self, request: PauseRequest, state: VmState) {
        let result = match (request.change, state) {
            (Change::Pause(_), VmState::Running)
            | (Change::Resume, VmState::Paused | VmState::Stopping) => {
                match self.operation(request.change) {
                    Ok(task) => {
                        self.current = Some(Operation { request, task });
                        return;
                    }
                    Err(error) => Err(error),
                }
            }
            (Change::Pause(requests), VmState::Paused) => {
                self.session.pause(requests == WhilePaused::Fail);
                Ok(())
            }
            (Change::Resume, VmState::Running) => Ok(()),
            (_, VmState::Stopping) => Err(Error::Busy("the VM is being stopped")),
            (_, VmState::Killing(reason) | VmState::Ended(VmEnd { reason, .. })) => {
                Err(Error::Gone(reason))
            }
        };
        request.reply(result);
    }

    /// Returns the task that makes a change.
    fn operation(&self, change: Change) -> Result<JoinHandle<Result<(), Error>>, Error> {
        let control = self.control.clone().ok_or_else(|| Error::BackendLacks {
            backend: self.backend.clone(),
            feature: Feature::Pause,
            remedy: match self.backend.as_str() {
                "firecracker" | "cloud_hypervisor" => {
                    "enable its API with `with_api`, or choose the backend qemu"
                }
                "qemu" => "it has the link hybrid-vsock, choose the link serial",
                _ => "choose the backend qemu",
            },
        })?;
        let session = self.session.clone();
        Ok(tokio::spawn(async move {
            match change {
                Change::Pause(requests) => {
                    // First, so that nothing is sent to a guest that stands still.
                    session.pause(requests == WhilePaused::Fail);
                    let paused = on_control(control, |control| control.pause()).await;
                    paused.inspect_err(|_| session.resume())
                }
                Change::Resume => {
                    on_control(control, |control| control.resume()).await?;
                    clock::set_after_pause(&session).await;
                    Ok(())
                }
            }
        }))
    }

    /// Waits until what is being done is done, or forever if there is nothing. Returns
    /// its effect, unless it failed.
    ///
    /// Cancel safe.
    pub(super) async fn next_event(&mut self) -> Option<Event> {
        let Some(operation) = &mut self.current else {
            return pending().await;
        };
        let result = (&mut operation.task).await;
        let Operation { request, .. } = self.current.take()?;
        let event = match request.change {
            Change::Pause(_) => Event::Paused,
            Change::Resume => Event::Resumed,
        };
        // Fails only if the runtime shuts down, or the control panics.
        let result = result.unwrap_or_else(|error| {
            Err(Error::Control {
                doing: "be controlled",
                reason: error.to_string(),
            })
        });
        let event = result.is_ok().then_some(event);
        request.reply(result);
        event
    }

    /// Resumes the VM, and blocks until it runs.
    pub(super) fn resume_blocking(&self) {
        if let Some(control) = &self.control {
            let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = control.resume() {
                tracing::warn!(%error, "a VM cannot be resumed to be stopped");
            }
        }
    }
}

/// Uses the control on a thread that may block.
async fn on_control(
    control: SharedControl,
    run: impl FnOnce(&mut dyn VmmControl) -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let blocking = spawn_blocking(move || {
        let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
        run(&mut **control)
    });
    blocking.await.unwrap_or_else(|error| {
        Err(Error::Control {
            doing: "be controlled",
            reason: error.to_string(),
        })
    })
}
