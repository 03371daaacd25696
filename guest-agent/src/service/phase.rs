use alloc::string::String;

use vmcell_wire::{Failure, service as wire};

use crate::clock::Moment;

/// What a service does, and what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is not started before this one is ready.
    Waiting(String),
    /// Its process has yet to execute its program.
    Launching,
    /// It runs, and its probe has not succeeded yet.
    Starting,
    /// It runs, and its probe has succeeded if there is one.
    Up,
    /// Its processes are on their way out.
    Ending(Then),
    /// It is started again at this moment.
    Pausing(Moment),
    Stopped,
    Failed(FailureReason),
}

/// What becomes of a service when its processes are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Stop,
    /// Somebody has asked for another start.
    Start,
    /// Its policy wants it again.
    Restart,
    Fail(FailureReason),
}

/// Why a service has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FailureReason {
    Died,
    NotReady(String),
    NotAlive(String),
    Need(String),
    NotStarted(Failure<'static>),
}

impl Phase {
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }

    /// As hosts are told. `has_probe`: whether it is ready or only runs.
    pub(super) fn to_wire(&self, has_probe: bool) -> wire::Phase<'_> {
        match self {
            Self::Waiting(name) => wire::Phase::Waiting(name),
            Self::Launching | Self::Starting => wire::Phase::Starting,
            Self::Up if has_probe => wire::Phase::Ready,
            Self::Up => wire::Phase::Running,
            Self::Ending(Then::Restart) | Self::Pausing(_) => wire::Phase::Restarting,
            Self::Ending(_) => wire::Phase::Stopping,
            Self::Stopped => wire::Phase::Stopped,
            Self::Failed(reason) => wire::Phase::Failed(reason.to_wire()),
        }
    }
}

impl FailureReason {
    fn to_wire(&self) -> wire::FailureReason<'_> {
        match self {
            Self::Died => wire::FailureReason::Died,
            Self::NotReady(text) => wire::FailureReason::NotReady(text),
            Self::NotAlive(text) => wire::FailureReason::NotAlive(text),
            Self::Need(name) => wire::FailureReason::Need(name),
            Self::NotStarted(failure) => wire::FailureReason::NotStarted(*failure),
        }
    }
}
