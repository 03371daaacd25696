use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    limits::{MAX_FAILURE_TEXT, MAX_SERVICE_NAME},
    process::{BufferedRange, Exit},
};

/// The state of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its phase.
    #[serde(borrow)]
    pub phase: Phase<'a>,
    /// The time in this phase, in milliseconds.
    pub since_ms: u64,
    /// The pid of its process, while it runs.
    pub pid: Option<u32>,
    /// The number of automatic restarts since the last start by request.
    pub restarts: u32,
    /// How its last run ended, if one did.
    pub last_exit: Option<Exit>,
    /// The bytes of its log that are buffered.
    pub log: BufferedRange,
}

impl ServiceState<'_> {
    /// Returns whether all texts are within their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.name.len() <= MAX_SERVICE_NAME && self.phase.is_valid()
    }
}

/// The phase of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Phase<'a> {
    /// It waits for this service to become ready.
    Waiting(&'a str),
    /// It runs but is not ready yet.
    Starting,
    /// Its probe has succeeded.
    Ready,
    /// It runs, and has no readiness probe.
    Running,
    /// It ended and will be restarted.
    Restarting,
    /// It is being stopped.
    Stopping,
    /// It ended normally.
    Stopped,
    /// It failed.
    #[serde(borrow)]
    Failed(FailureReason<'a>),
}

impl Phase<'_> {
    fn is_valid(&self) -> bool {
        match self {
            Self::Waiting(name) => name.len() <= MAX_SERVICE_NAME,
            Self::Failed(reason) => reason.is_valid(),
            Self::Starting
            | Self::Ready
            | Self::Running
            | Self::Restarting
            | Self::Stopping
            | Self::Stopped => true,
        }
    }

    /// Returns whether this is a final phase, which only a start request changes.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }
}

/// Why a service failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FailureReason<'a> {
    /// Its process ended: see [`ServiceState::last_exit`].
    Exited,
    /// It was not ready in time. Contains the reason of the last failed attempt.
    NotReady(&'a str),
    /// Its liveness probe failed too often. Contains the reason of the last failed
    /// attempt.
    NotAlive(&'a str),
    /// This service, which it needs, failed or was stopped.
    DependencyFailed(&'a str),
    /// It could not be started.
    #[serde(borrow)]
    NotStarted(Failure<'a>),
}

impl FailureReason<'_> {
    fn is_valid(&self) -> bool {
        match self {
            Self::Exited => true,
            Self::NotReady(text) | Self::NotAlive(text) => text.len() <= MAX_FAILURE_TEXT,
            Self::DependencyFailed(name) => name.len() <= MAX_SERVICE_NAME,
            Self::NotStarted(failure) => failure.is_valid(),
        }
    }
}
