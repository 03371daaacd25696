use alloc::string::String;

use vmcell_wire::{Failure, service as wire};

use crate::clock::Moment;

/// The phase of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for this service to be ready.
    Waiting(String),
    /// Its process has not executed its program yet.
    Launching,
    /// It runs, and its probe has not succeeded yet.
    Starting,
    /// It runs, and its probe has succeeded if there is one.
    Up,
    /// Its processes are being ended.
    Stopping(AfterExit),
    /// It will be restarted at this moment.
    Pausing(Moment),
    Stopped,
    Failed(FailureReason),
}

/// What to do with a service when its processes have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AfterExit {
    Stop,
    /// Start it as a request asked.
    Start,
    /// Restart it as its policy asks.
    Restart,
    Fail(FailureReason),
}

/// Why a service failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FailureReason {
    Exited,
    NotReady(String),
    NotAlive(String),
    DependencyFailed(String),
    NotStarted(Failure<'static>),
}

impl Phase {
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }

    /// Returns the phase in the form that is sent to hosts. `has_probe`
    /// distinguishes ready from running.
    pub(super) fn to_wire(&self, has_probe: bool) -> wire::Phase<'_> {
        match self {
            Self::Waiting(name) => wire::Phase::Waiting(name),
            Self::Launching | Self::Starting => wire::Phase::Starting,
            Self::Up if has_probe => wire::Phase::Ready,
            Self::Up => wire::Phase::Running,
            Self::Stopping(AfterExit::Restart) | Self::Pausing(_) => wire::Phase::Restarting,
            Self::Stopping(_) => wire::Phase::Stopping,
            Self::Stopped => wire::Phase::Stopped,
            Self::Failed(reason) => wire::Phase::Failed(reason.to_wire()),
        }
    }
}

impl FailureReason {
    fn to_wire(&self) -> wire::FailureReason<'_> {
        match self {
            Self::Exited => wire::FailureReason::Exited,
            Self::NotReady(text) => wire::FailureReason::NotReady(text),
            Self::NotAlive(text) => wire::FailureReason::NotAlive(text),
            Self::DependencyFailed(name) => wire::FailureReason::DependencyFailed(name),
            Self::NotStarted(failure) => wire::FailureReason::NotStarted(*failure),
        }
    }
}
