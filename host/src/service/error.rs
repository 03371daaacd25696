use vmcell_wire::{FailureKind, Stage, limits::MAX_SERVICE_NAME};

use super::ServiceFailure;
use crate::{
    process::{ExecFailure, ExecFailureKind},
    session::Failed,
};

/// What went wrong with a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// No service can be called so.
    #[error(
        "{name:?} cannot be the name of a service: use 1 to {MAX_SERVICE_NAME} letters, digits, hyphens, underscores and dots, with a letter or digit first"
    )]
    BadName {
        /// The name.
        name: String,
    },

    /// There is no such service.
    #[error("there is no service {name:?}: start it, or list those that there are")]
    Unknown {
        /// Its name.
        name: String,
    },

    /// It cannot be started, because it is not over.
    #[error(
        "a service {name:?} runs already: stop it first, or start it with `start_same` if this one will do"
    )]
    Runs {
        /// Its name.
        name: String,
    },

    /// It cannot be removed, because it is not over.
    #[error("the service {name:?} still runs: stop it before you remove it")]
    NotOver {
        /// Its name.
        name: String,
    },

    /// It needs a service that there is not. Nothing was started.
    #[error("the service {name:?} needs {need:?}, which there is not: start that one first")]
    UnknownNeed {
        /// Its name.
        name: String,
        /// The name of what is missing.
        need: String,
    },

    /// Services need each other, so that none of them could be the first.
    /// Nothing was started.
    #[error("services need each other in a circle: {}: take one of these needs away", path.join(" -> "))]
    Cycle {
        /// The names, from one to the same again.
        path: Vec<String>,
    },

    /// Two of the services that were to be started have this name. Nothing was
    /// started.
    #[error("two services are called {name:?}: give one of them another name")]
    Twice {
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

    /// The guest does not take it so, or cannot do it.
    #[error("the guest refuses what was asked of the service {name:?}: {text}")]
    Refused {
        /// Its name.
        name: String,
        /// What sort of refusal.
        kind: ExecFailureKind,
        /// The agent's words.
        text: String,
    },

    /// It is over, though it was to be ready.
    #[error(transparent)]
    Failed(Box<ServiceFailure>),
}

impl ServiceError {
    /// A name for the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad-service-name",
            Self::Unknown { .. } => "no-such-service",
            Self::Runs { .. } => "service-runs",
            Self::NotOver { .. } => "service-not-over",
            Self::UnknownNeed { .. } => "unknown-need",
            Self::Cycle { .. } => "service-cycle",
            Self::Twice { .. } => "service-twice",
            Self::NotStarted { .. } => "service-not-started",
            Self::Refused { .. } => "service-refused",
            Self::Failed(_) => "service-failed",
        }
    }

    /// Why a start was refused.
    pub(super) fn of_start(failed: Failed, name: &str, program: String) -> Self {
        let name = name.to_owned();
        match (failed.kind, failed.stage) {
            (FailureKind::Conflict, Stage::Service) => Self::Runs { name },
            (_, Stage::Service | Stage::Request) => Self::refused(failed, name),
            _ => Self::NotStarted {
                name,
                failure: ExecFailure::from_guest(failed, program),
            },
        }
    }

    /// Why something else was refused.
    pub(super) fn of_other(failed: Failed, name: &str) -> Self {
        let name = name.to_owned();
        match failed.kind {
            FailureKind::NotFound => Self::Unknown { name },
            FailureKind::Conflict => Self::NotOver { name },
            _ => Self::refused(failed, name),
        }
    }

    fn refused(failed: Failed, name: String) -> Self {
        let failure = ExecFailure::from_guest(failed, String::new());
        Self::Refused {
            name,
            kind: failure.kind,
            text: failure.text,
        }
    }
}
