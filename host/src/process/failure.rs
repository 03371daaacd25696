use vmcell_wire::{Failure, FailureKind, Stage};

use crate::printable::printable;

/// Why the guest could not start a command. Nothing was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program:?} did not start: {text}{}", errno_text(*errno))]
#[non_exhaustive]
pub struct ExecFailure {
    /// The program that was to be run.
    pub program: String,
    /// What sort of failure.
    pub kind: ExecFailureKind,
    /// The error number of the guest's kernel, if it had a part in it.
    pub errno: Option<i32>,
    /// How far the start got.
    pub stage: ExecStage,
    /// The agent's words.
    pub text: String,
}

/// What sort of failure kept a command from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecFailureKind {
    /// The request makes no sense to the guest.
    Invalid,
    /// The program or the working directory does not exist.
    NotFound,
    /// The guest does not permit it.
    Denied,
    /// The guest has no more room for it.
    Limit,
    /// The agent or the guest's kernel cannot do it.
    Unsupported,
    /// Anything else.
    Other,
}

/// How far the start of a command got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecStage {
    /// Reading the request.
    Request,
    /// Making the process and what it needs.
    Process,
    /// Entering its working directory.
    WorkingDirectory,
    /// Finding and executing the program.
    Exec,
}

impl ExecFailure {
    pub(crate) fn from_wire(failure: &Failure<'_>) -> Self {
        Self {
            program: String::new(),
            kind: match failure.kind {
                FailureKind::Invalid => ExecFailureKind::Invalid,
                FailureKind::NotFound => ExecFailureKind::NotFound,
                FailureKind::Denied => ExecFailureKind::Denied,
                FailureKind::Limit => ExecFailureKind::Limit,
                FailureKind::Unsupported => ExecFailureKind::Unsupported,
                _ => ExecFailureKind::Other,
            },
            errno: (failure.errno != 0).then_some(failure.errno.into()),
            stage: match failure.stage {
                Stage::Request => ExecStage::Request,
                Stage::WorkingDirectory => ExecStage::WorkingDirectory,
                Stage::Exec => ExecStage::Exec,
                _ => ExecStage::Process,
            },
            text: printable(failure.text.as_bytes()),
        }
    }
}

fn errno_text(errno: Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| {
        format!(": {}", std::io::Error::from_raw_os_error(errno))
    })
}
