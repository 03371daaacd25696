use vmcell_wire::{Failure, FailureKind, Outcome, Stage};

use super::ProcessSelector;
use crate::{error::Error, printable};

/// Why the guest could not start, find or signal a process. If a start failed,
/// nothing was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {text}{}", errno_text(*errno))]
#[non_exhaustive]
pub struct ExecFailure {
    /// The program that was to be run, or the process that was named.
    pub subject: String,
    /// The kind of failure.
    pub kind: ExecFailureKind,
    /// The errno of the guest's kernel, if a system call failed.
    pub errno: Option<i32>,
    /// The step that failed.
    pub stage: ExecStage,
    /// The agent's message.
    pub text: String,
}

/// The kind of an [`ExecFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecFailureKind {
    /// The guest rejects the request as invalid.
    Invalid,
    /// The program, the working directory, the user or the process does not
    /// exist.
    NotFound,
    /// The guest does not permit it.
    Denied,
    /// A limit of the guest is reached.
    Limit,
    /// The agent or the guest's kernel cannot do it.
    Unsupported,
    /// It conflicts with the current state: a tag that is taken, a process that
    /// still runs.
    Conflict,
    /// Anything else.
    Other,
}

/// The step of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecStage {
    /// Reading the request.
    Request,
    /// Finding the process that it names.
    Lookup,
    /// Looking up its user, or switching to that user.
    User,
    /// Setting its limits.
    Limits,
    /// Creating the process and what it needs.
    Process,
    /// Entering its working directory.
    WorkingDirectory,
    /// Finding and executing the program.
    Exec,
}

impl ExecFailure {
    /// Returns the failure of naming a process that does not exist, for example
    /// where [`get`](super::Processes::get) returned `None`.
    pub fn not_found(process: &ProcessSelector) -> Self {
        Self {
            subject: process.to_string(),
            kind: ExecFailureKind::NotFound,
            errno: None,
            stage: ExecStage::Lookup,
            text: "no such process".to_owned(),
        }
    }

    /// Returns the error of a request that was closed with an unexpected outcome,
    /// for example because it failed.
    pub(crate) fn refusal(outcome: &Outcome<'_>, subject: String) -> Error {
        match outcome {
            Outcome::Failed(failure) => Self::from_wire(failure, subject).into(),
            _ => Error::unexpected_reply(),
        }
    }

    /// Turns the failure that something does not exist into `None`.
    pub(crate) fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Error::Exec(failure)) if failure.kind == ExecFailureKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn from_wire(failed: &Failure<'_>, subject: String) -> Self {
        Self {
            subject,
            kind: match failed.kind {
                FailureKind::Invalid => ExecFailureKind::Invalid,
                FailureKind::NotFound => ExecFailureKind::NotFound,
                FailureKind::Denied => ExecFailureKind::Denied,
                FailureKind::Limit => ExecFailureKind::Limit,
                FailureKind::Unsupported => ExecFailureKind::Unsupported,
                FailureKind::Conflict => ExecFailureKind::Conflict,
                _ => ExecFailureKind::Other,
            },
            errno: (failed.errno != 0).then_some(failed.errno.into()),
            stage: match failed.stage {
                Stage::Request => ExecStage::Request,
                Stage::Process => ExecStage::Lookup,
                Stage::User => ExecStage::User,
                Stage::Limits => ExecStage::Limits,
                Stage::WorkingDirectory => ExecStage::WorkingDirectory,
                Stage::Exec => ExecStage::Exec,
                _ => ExecStage::Process,
            },
            text: printable(failed.text.as_bytes()).into_owned(),
        }
    }
}

fn errno_text(errno: Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| {
        format!(": {}", std::io::Error::from_raw_os_error(errno))
    })
}
