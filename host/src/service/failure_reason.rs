use std::fmt;

use vmcell_wire::service as wire;

use super::status::valid_name;
use crate::{printable, process::ExecFailure};

/// Why a service failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureReason {
    /// Its process ended: see [`ServiceStatus::last_exit`](super::ServiceStatus::last_exit).
    Died,
    /// It was not ready in time. Holds the message of the last attempt of its
    /// probe.
    NotReady(String),
    /// It was ready, and its liveness probe failed too often since. Holds the
    /// message of the last attempt.
    NotAlive(String),
    /// This service, which it needs, failed or was stopped.
    Need(String),
    /// It could not be started.
    NotStarted(ExecFailure),
}

impl FailureReason {
    /// Returns a stable name of the kind of reason, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Died => "died",
            Self::NotReady(_) => "not-ready",
            Self::NotAlive(_) => "not-alive",
            Self::Need(_) => "need",
            Self::NotStarted(_) => "not-started",
        }
    }

    /// Returns the reason that an agent reports; `None` if it is unknown.
    pub(super) fn from_wire(reason: &wire::FailureReason<'_>) -> Option<Self> {
        let text = |text: &str| printable(text.as_bytes()).into_owned();
        Some(match reason {
            wire::FailureReason::Exited => Self::Died,
            wire::FailureReason::NotReady(last) => Self::NotReady(text(last)),
            wire::FailureReason::NotAlive(last) => Self::NotAlive(text(last)),
            wire::FailureReason::DependencyFailed(need) => Self::Need(valid_name(need)?),
            wire::FailureReason::NotStarted(failure) => {
                Self::NotStarted(ExecFailure::from_wire(failure, "its program".to_owned()))
            }
            _ => return None,
        })
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => f.write_str("its process ended"),
            Self::NotReady(last) => write!(f, "it was not ready in time{}", LastMessage(last)),
            Self::NotAlive(last) => write!(f, "its liveness probe failed{}", LastMessage(last)),
            Self::Need(need) => write!(f, "it needs {need:?}, which is not running"),
            Self::NotStarted(failure) => write!(f, "it could not be started: {failure}"),
        }
    }
}

/// Displays the message of the last attempt of a probe, if there is one.
struct LastMessage<'a>(&'a str);

impl fmt::Display for LastMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            text => write!(f, ": {text}"),
        }
    }
}
