use vmcell_wire::{Failure, FailureKind, Outcome, Stage, limits::MAX_SERVICE_NAME};

use super::{LogPatternError, ServiceFailure};
use crate::{
    error::Error,
    process::{ExecFailure, ExecFailureKind},
};

/// An error of a service operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The name is not a valid service name.
    #[error(
        "{name:?} cannot be the name of a service: use 1 to {MAX_SERVICE_NAME} letters, digits, hyphens, underscores and dots, with a letter or digit first"
    )]
    BadName {
        /// The name.
        name: String,
    },

    /// The pattern of its log probe is not valid. Nothing was started.
    #[error("{pattern:?} cannot be the pattern of a log probe: {reason}")]
    BadLogPattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: LogPatternError,
    },

    /// No service has this name.
    #[error("there is no service {name:?}: start it, or list the services")]
    Unknown {
        /// Its name.
        name: String,
    },

    /// It cannot be started, because it is not finished.
    #[error(
        "a service {name:?} runs already: stop it first, or start it with `ensure_started` if the running one will do"
    )]
    Running {
        /// Its name.
        name: String,
    },

    /// It cannot be removed, because it is not finished.
    #[error("the service {name:?} still runs: stop it before you remove it")]
    NotStopped {
        /// Its name.
        name: String,
    },

    /// It needs a service that does not exist. Nothing was started.
    #[error("the service {name:?} needs {need:?}, which does not exist: start that one first")]
    UnknownNeed {
        /// Its name.
        name: String,
        /// The name of the missing service.
        need: String,
    },

    /// The services depend on each other in a cycle, so none of them could
    /// start first. Nothing was started.
    #[error("services need each other in a cycle: {}: remove one of these needs", path.join(" -> "))]
    Cycle {
        /// The names along the cycle. The first and the last are the same.
        path: Vec<String>,
    },

    /// Two of the services that were to be started have this name. Nothing was
    /// started.
    #[error("two services have the name {name:?}: rename one of them")]
    DuplicateName {
        /// The name.
        name: String,
    },

    /// Its program could not be started. Nothing is left of the service.
    #[error("the service {name:?} did not start: {failure}")]
    NotStarted {
        /// Its name.
        name: String,
        /// Why.
        failure: ExecFailure,
    },

    /// The guest rejected the request.
    #[error("the guest rejected a request for the service {name:?}: {text}")]
    Refused {
        /// Its name.
        name: String,
        /// The kind of rejection.
        kind: ExecFailureKind,
        /// The agent's message.
        text: String,
    },

    /// It is finished instead of ready.
    #[error(transparent)]
    Failed(Box<ServiceFailure>),
}

impl ServiceError {
    /// Returns a stable name of the kind of error, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad-service-name",
            Self::BadLogPattern { .. } => "bad-log-pattern",
            Self::Unknown { .. } => "no-such-service",
            Self::Running { .. } => "service-runs",
            Self::NotStopped { .. } => "service-not-over",
            Self::UnknownNeed { .. } => "unknown-need",
            Self::Cycle { .. } => "service-cycle",
            Self::DuplicateName { .. } => "service-twice",
            Self::NotStarted { .. } => "service-not-started",
            Self::Refused { .. } => "service-refused",
            Self::Failed(_) => "service-failed",
        }
    }

    /// Converts the guest's reply to a failed start.
    pub(super) fn of_start(failed: &Failure<'_>, name: &str, program: String) -> Self {
        let name = name.to_owned();
        match (failed.kind, failed.stage) {
            (FailureKind::Conflict, Stage::Service) => Self::Running { name },
            (_, Stage::Service | Stage::Request) => Self::refused(failed, name),
            _ => Self::NotStarted {
                name,
                failure: ExecFailure::from_wire(failed, program),
            },
        }
    }

    /// Returns the error of a request that was closed with an unexpected outcome,
    /// for example because it failed.
    pub(super) fn refusal(outcome: &Outcome<'_>, name: &str) -> Error {
        match outcome {
            Outcome::Failed(failure) => Self::of_other(failure, name).into(),
            _ => Error::unexpected_reply(),
        }
    }

    /// Converts the guest's reply to any other request that failed.
    fn of_other(failed: &Failure<'_>, name: &str) -> Self {
        let name = name.to_owned();
        match failed.kind {
            FailureKind::NotFound => Self::Unknown { name },
            FailureKind::Conflict => Self::NotStopped { name },
            _ => Self::refused(failed, name),
        }
    }

    fn refused(failed: &Failure<'_>, name: String) -> Self {
        let failure = ExecFailure::from_wire(failed, String::new());
        Self::Refused {
            name,
            kind: failure.kind,
            text: failure.text,
        }
    }
}
