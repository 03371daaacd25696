use vmcell_wire::{
    BufferedRange, Exit, Failure, WireError,
    limits::MAX_FAILURE_TEXT,
    service::{FailureReason, Phase, ServiceState as WireState, is_valid_name},
};

use super::event::Failed;
use vmcell_tree::{printable, truncate_text};

/// An owned [`State`] whose texts are safe to print.
#[derive(Clone, Debug)]
pub(crate) struct ServiceState {
    pub(crate) name: String,
    pub(crate) phase: ServicePhase,
    pub(crate) since_ms: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) restarts: u32,
    pub(crate) last_exit: Option<Exit>,
    pub(crate) log: BufferedRange,
}

/// An owned [`Phase`].
#[derive(Clone, Debug)]
pub(crate) enum ServicePhase {
    Waiting(String),
    Starting,
    Ready,
    Running,
    Restarting,
    Stopping,
    Stopped,
    Failed(ServiceFailureReason),
}

/// An owned [`FailureReason`].
#[derive(Clone, Debug)]
pub(crate) enum ServiceFailureReason {
    Died,
    NotReady(String),
    NotAlive(String),
    Need(String),
    NotStarted(Failed),
}

impl ServiceState {
    /// Fails if a name is not valid, or if this version does not know the phase
    /// or the reason.
    pub(super) fn from_wire(state: &WireState<'_>) -> Result<Self, WireError> {
        Ok(Self {
            name: name(state.name)?,
            phase: ServicePhase::from_wire(&state.phase)?,
            since_ms: state.since_ms,
            pid: state.pid,
            restarts: state.restarts,
            last_exit: state.last_exit,
            log: state.log,
        })
    }

    /// Borrows this as a wire message.
    pub(super) fn as_wire(&self) -> WireState<'_> {
        WireState {
            name: &self.name,
            phase: self.phase.as_wire(),
            since_ms: self.since_ms,
            pid: self.pid,
            restarts: self.restarts,
            last_exit: self.last_exit,
            log: self.log,
        }
    }
}

impl ServicePhase {
    fn from_wire(phase: &Phase<'_>) -> Result<Self, WireError> {
        Ok(match phase {
            Phase::Waiting(need) => Self::Waiting(name(need)?),
            Phase::Starting => Self::Starting,
            Phase::Ready => Self::Ready,
            Phase::Running => Self::Running,
            Phase::Restarting => Self::Restarting,
            Phase::Stopping => Self::Stopping,
            Phase::Stopped => Self::Stopped,
            Phase::Failed(reason) => Self::Failed(ServiceFailureReason::from_wire(reason)?),
            _ => return Err(WireError::Malformed),
        })
    }

    fn as_wire(&self) -> Phase<'_> {
        match self {
            Self::Waiting(need) => Phase::Waiting(need),
            Self::Starting => Phase::Starting,
            Self::Ready => Phase::Ready,
            Self::Running => Phase::Running,
            Self::Restarting => Phase::Restarting,
            Self::Stopping => Phase::Stopping,
            Self::Stopped => Phase::Stopped,
            Self::Failed(reason) => Phase::Failed(reason.as_wire()),
        }
    }
}

impl ServiceFailureReason {
    fn from_wire(reason: &FailureReason<'_>) -> Result<Self, WireError> {
        Ok(match reason {
            FailureReason::Exited => Self::Died,
            FailureReason::NotReady(text) => {
                Self::NotReady(printable(text.as_bytes()).into_owned())
            }
            FailureReason::NotAlive(text) => {
                Self::NotAlive(printable(text.as_bytes()).into_owned())
            }
            FailureReason::DependencyFailed(need) => Self::Need(name(need)?),
            FailureReason::NotStarted(failure) => Self::NotStarted(Failed::from_wire(failure)),
            _ => return Err(WireError::Malformed),
        })
    }

    fn as_wire(&self) -> FailureReason<'_> {
        // Texts may have grown when they were made safe to print.
        match self {
            Self::Died => FailureReason::Exited,
            Self::NotReady(text) => FailureReason::NotReady(truncate_text(text, MAX_FAILURE_TEXT)),
            Self::NotAlive(text) => FailureReason::NotAlive(truncate_text(text, MAX_FAILURE_TEXT)),
            Self::Need(need) => FailureReason::DependencyFailed(need),
            Self::NotStarted(failed) => FailureReason::NotStarted(failed.as_wire()),
        }
    }
}

impl Failed {
    /// Borrows this as a wire message.
    pub(super) fn as_wire(&self) -> Failure<'_> {
        Failure {
            kind: self.kind,
            errno: self.errno,
            stage: self.stage,
            // It may have grown when it was made safe to print.
            text: truncate_text(&self.text, MAX_FAILURE_TEXT),
        }
    }
}

fn name(name: &str) -> Result<String, WireError> {
    match is_valid_name(name) {
        true => Ok(name.to_owned()),
        false => Err(WireError::Malformed),
    }
}
