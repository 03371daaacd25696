use std::{
    collections::VecDeque,
    future::pending,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
};

use super::{
    VmEnd, VmState, WhilePaused, clock, disk_switch, disk_switch::SwitchJob, freeze, saving,
    saving::SaveJob, state::Event,
};
use crate::{
    backend::{Feature, VmmControl},
    error::Error,
    session::Session,
};

/// Pauses, resumes and saves a VM and switches its disk, one request after the other.
pub(super) struct Pauser {
    control: Result<PauseControl, &'static str>,
    backend: String,
    waiting: VecDeque<PauseRequest>,
    current: Option<Operation>,
    session: Arc<Session>,
}

/// What it takes to pause a VM.
#[derive(Clone)]
pub(super) struct PauseControl {
    vmm: Arc<Mutex<Box<dyn VmmControl>>>,
    pub(super) session: Arc<Session>,
    /// Whether the processes of the guest are frozen as well.
    pub(super) is_frozen: Arc<AtomicBool>,
    /// Whether the VM is paused only because it was saved.
    pub(super) is_paused_by_save: Arc<AtomicBool>,
    /// Whether the VMM has begun to save the VM since it last went on.
    pub(super) was_saved: Arc<AtomicBool>,
}

/// A request to pause, resume or save the VM, or to switch its disk.
pub(super) struct PauseRequest {
    pub(super) change: Change,
    /// Where the result is wanted.
    pub(super) reply: Option<oneshot::Sender<Result<(), Error>>>,
}

#[derive(Debug)]
pub(super) enum Change {
    Pause(WhilePaused),
    Resume,
    Save(SaveJob),
    SwitchDisk(SwitchJob),
    /// Resume a VM that is paused only because it was saved.
    ResumeSaved,
}

/// What is being done.
struct Operation {
    reply: Option<oneshot::Sender<Result<(), Error>>>,
    task: JoinHandle<Done>,
}

/// What was done.
pub(super) struct Done {
    pub(super) result: Result<(), Error>,
    /// What has become of the VM.
    pub(super) event: Option<Event>,
}

impl Pauser {
    /// Creates it with the control over the VMM, or with what to do about it that there
    /// is none.
    pub(super) fn new(
        control: Result<Box<dyn VmmControl>, &'static str>,
        backend: String,
        session: Arc<Session>,
    ) -> Self {
        let control = control.map(|control| PauseControl {
            vmm: Arc::new(Mutex::new(control)),
            session: session.clone(),
            is_frozen: Arc::default(),
            is_paused_by_save: Arc::default(),
            was_saved: Arc::default(),
        });
        Self {
            control,
            backend,
            waiting: VecDeque::new(),
            current: None,
            session,
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
        let PauseRequest { change, reply } = request;
        let is_paused_by_save = |control: &PauseControl| {
            let by_save = &control.is_paused_by_save;
            by_save.load(Ordering::Relaxed)
        };
        let change = match change {
            Change::ResumeSaved if self.control.as_ref().is_ok_and(is_paused_by_save) => {
                Change::Resume
            }
            change => change,
        };
        let result = match (change, state) {
            (Change::ResumeSaved, _) => Ok(()),
            (change @ Change::Pause(_), VmState::Running)
            | (change @ Change::Resume, VmState::Paused | VmState::Stopping)
            | (
                change @ (Change::Save(_) | Change::SwitchDisk(_)),
                VmState::Running | VmState::Paused,
            ) => {
                let is_paused = state == VmState::Paused;
                match self.operation(change, is_paused) {
                    Ok(task) => {
                        self.current = Some(Operation { reply, task });
                        return;
                    }
                    Err(error) => Err(error),
                }
            }
            (Change::Pause(requests), VmState::Paused) => {
                if let Ok(control) = &self.control {
                    control.is_paused_by_save.store(false, Ordering::Relaxed);
                }
                self.session.pause(requests == WhilePaused::Fail);
                Ok(())
            }
            (Change::Resume, VmState::Running) => Ok(()),
            (_, VmState::Stopping) => Err(Error::Busy("the VM is being stopped")),
            (_, VmState::Killing(reason) | VmState::Ended(VmEnd { reason, .. })) => {
                Err(Error::Gone(reason))
            }
        };
        send_result(reply, result);
    }

    /// Returns the task that makes a change.
    fn operation(&self, change: Change, is_paused: bool) -> Result<JoinHandle<Done>, Error> {
        let lacks = |remedy: &&'static str| Error::BackendLacks {
            backend: self.backend.clone(),
            feature: match change {
                Change::Pause(_) | Change::Resume | Change::ResumeSaved => Feature::Pause,
                Change::Save(_) => Feature::Snapshot,
                Change::SwitchDisk(_) => Feature::SwitchDisk,
            },
            remedy,
        };
        let control = self.control.as_ref().map_err(lacks)?.clone();
        Ok(tokio::spawn(async move {
            match change {
                Change::Pause(requests) => Done::new(Event::Paused, control.pause(requests).await),
                Change::Resume | Change::ResumeSaved => {
                    Done::new(Event::Resumed, control.resume().await)
                }
                Change::Save(job) => saving::save(&control, job, is_paused).await,
                Change::SwitchDisk(job) => disk_switch::switch(&control, job, is_paused).await,
            }
        }))
    }

    /// Waits until what is being done is done, or forever if there is nothing. Returns
    /// what has become of the VM, if that has changed.
    ///
    /// Cancel safe.
    pub(super) async fn next_event(&mut self) -> Option<Event> {
        let Some(operation) = &mut self.current else {
            return pending().await;
        };
        let done = (&mut operation.task).await;
        let Operation { reply, .. } = self.current.take()?;
        // Fails only if the runtime shuts down, or the control panics.
        let Done { result, event } = done.unwrap_or_else(|error| Done {
            result: Err(not_controlled(error.to_string())),
            event: None,
        });
        send_result(reply, result);
        event
    }

    /// Resumes the VM, and blocks until it runs.
    pub(super) fn resume_blocking(&self) {
        if let Ok(control) = &self.control {
            let mut vmm = control.vmm.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = vmm.resume() {
                tracing::warn!(%error, "a VM cannot be resumed to be stopped");
            }
        }
    }
}

impl PauseControl {
    async fn pause(&self, requests: WhilePaused) -> Result<(), Error> {
        // First, so that nothing is sent to a guest that stands still.
        self.session.pause(requests == WhilePaused::Fail);
        let paused = self.on_vmm(|vmm| vmm.pause()).await;
        paused.inspect_err(|_| self.session.resume())
    }

    /// Lets the VM and its processes run, and sets its clock.
    pub(super) async fn resume(&self) -> Result<(), Error> {
        self.on_vmm(|vmm| vmm.resume()).await?;
        self.is_paused_by_save.store(false, Ordering::Relaxed);
        self.go_on().await;
        Ok(())
    }

    /// Lets the processes of a VM run whose processors run, and sets its clock.
    pub(super) async fn go_on(&self) {
        // Saving it closes the connections of its guest: Firecracker has the driver do so.
        if self.was_saved.swap(false, Ordering::Relaxed) {
            self.session.replace_connection().await;
        }
        // The clock first, so that no process sees it wrong.
        clock::set_after_pause(&self.session).await;
        if self.is_frozen.swap(false, Ordering::Relaxed) {
            freeze::thaw(&self.session).await;
        }
        self.session.resume();
    }

    /// Uses the control over the VMM on a thread that may block.
    pub(super) async fn on_vmm<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut dyn VmmControl) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let vmm = self.vmm.clone();
        let blocking = spawn_blocking(move || {
            let mut vmm = vmm.lock().unwrap_or_else(PoisonError::into_inner);
            run(&mut **vmm)
        });
        let done = blocking.await;
        done.unwrap_or_else(|error| Err(not_controlled(error.to_string())))
    }
}

impl Done {
    fn new(event: Event, result: Result<(), Error>) -> Self {
        Self {
            event: result.is_ok().then_some(event),
            result,
        }
    }
}

fn not_controlled(reason: String) -> Error {
    Error::Control {
        doing: "be controlled",
        reason,
    }
}

fn send_result(reply: Option<oneshot::Sender<Result<(), Error>>>, result: Result<(), Error>) {
    match (reply, result) {
        // Fails if nobody waits for it any more.
        (Some(reply), result) => drop(reply.send(result)),
        (None, Err(error)) => tracing::warn!(%error, "a VM cannot be resumed to be stopped"),
        (None, Ok(())) => {}
    }
}
