use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    limits::{MAX_FAILURE_TEXT, MAX_SERVICE_NAME},
    process::{Exit, Kept},
};

/// How a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What it does.
    #[serde(borrow)]
    pub phase: Phase<'a>,
    /// For how long it has been doing that, in milliseconds.
    pub since_ms: u64,
    /// The kernel's number of its process, while there is one.
    pub pid: Option<u32>,
    /// How often it was started again without being asked to, since it was last
    /// started by somebody.
    pub restarts: u32,
    /// How its last run ended, if one did.
    pub last_exit: Option<Exit>,
    /// Which bytes of its log are kept.
    pub log: Kept,
}

impl State<'_> {
    /// Whether the texts keep their limits.
    pub(crate) fn is_valid(&self) -> bool {
        self.name.len() <= MAX_SERVICE_NAME && self.phase.is_valid()
    }
}

/// What a service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Phase<'a> {
    /// It is not started before this one is ready.
    Waiting(&'a str),
    /// It runs and is not ready yet.
    Starting,
    /// Its probe has succeeded.
    Ready,
    /// It runs, and there is no probe.
    Running,
    /// It has ended and will be started again.
    Restarting,
    /// It was asked to end.
    Stopping,
    /// It has ended as it should.
    Stopped,
    /// It has ended as it should not.
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

    /// Whether it stays so unless somebody starts it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }
}

/// Why a service has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FailureReason<'a> {
    /// Its process ended: see [`State::last_exit`].
    Died,
    /// It was not ready in time. What the last attempt said, in a few words.
    NotReady(&'a str),
    /// It was ready once, and its probe failed too often. What the last attempt
    /// said, in a few words.
    NotAlive(&'a str),
    /// This service, which it needs, has failed or was stopped.
    Need(&'a str),
    /// It could not be started.
    #[serde(borrow)]
    NotStarted(Failure<'a>),
}

impl FailureReason<'_> {
    fn is_valid(&self) -> bool {
        match self {
            Self::Died => true,
            Self::NotReady(text) | Self::NotAlive(text) => text.len() <= MAX_FAILURE_TEXT,
            Self::Need(name) => name.len() <= MAX_SERVICE_NAME,
            Self::NotStarted(failure) => failure.is_valid(),
        }
    }
}
