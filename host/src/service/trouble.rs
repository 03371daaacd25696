use std::fmt;

use crate::{process::ExecFailure, session::ServiceFailureReason as Told};

/// Why a service has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceTrouble {
    /// Its process ended: see [`ServiceStatus::last_exit`](super::ServiceStatus::last_exit).
    Died,
    /// It was not ready in time. What the last attempt of its probe said.
    NotReady(String),
    /// It was ready once, and its probe failed too often since. What the last
    /// attempt said.
    NotAlive(String),
    /// This service, which it needs, has failed or was stopped.
    Need(String),
    /// It could not be started.
    NotStarted(ExecFailure),
}

impl ServiceTrouble {
    /// A name for the kind of trouble that never changes, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Died => "died",
            Self::NotReady(_) => "not-ready",
            Self::NotAlive(_) => "not-alive",
            Self::Need(_) => "need",
            Self::NotStarted(_) => "not-started",
        }
    }

    pub(super) fn from_guest(told: Told) -> Self {
        match told {
            Told::Died => Self::Died,
            Told::NotReady(text) => Self::NotReady(text),
            Told::NotAlive(text) => Self::NotAlive(text),
            Told::Need(need) => Self::Need(need),
            Told::NotStarted(failed) => {
                Self::NotStarted(ExecFailure::from_guest(failed, "its program".to_owned()))
            }
        }
    }
}

impl fmt::Display for ServiceTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => f.write_str("its process ended"),
            Self::NotReady(last) => write!(f, "it was not ready in time{}", Last(last)),
            Self::NotAlive(last) => write!(f, "its liveness probe failed{}", Last(last)),
            Self::Need(need) => write!(f, "it needs {need:?}, which is not running"),
            Self::NotStarted(failure) => write!(f, "it could not be started: {failure}"),
        }
    }
}

/// What the last attempt of a probe said, if it said anything.
struct Last<'a>(&'a str);

impl fmt::Display for Last<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            text => write!(f, ": {text}"),
        }
    }
}
