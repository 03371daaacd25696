use vmcell_wire::{FailureKind, Stage};

use crate::session::Failed;

/// Why the guest could not do what was asked of a process: start it, find it,
/// signal it. For a start: nothing was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {text}{}", errno_text(*errno))]
#[non_exhaustive]
pub struct ExecFailure {
    /// The program that was to be run, or the process that was named.
    pub subject: String,
    /// What sort of failure.
    pub kind: ExecFailureKind,
    /// The error number of the guest's kernel, if it had a part in it.
    pub errno: Option<i32>,
    /// How far it got.
    pub stage: ExecStage,
    /// The agent's words.
    pub text: String,
}

/// What sort of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecFailureKind {
    /// The request makes no sense to the guest.
    Invalid,
    /// The program, the working directory, the user or the process does not
    /// exist.
    NotFound,
    /// The guest does not permit it.
    Denied,
    /// The guest has no more room for it.
    Limit,
    /// The agent or the guest's kernel cannot do it.
    Unsupported,
    /// It clashes with what is there: a tag that is taken, a process that
    /// still runs.
    Conflict,
    /// Anything else.
    Other,
}

/// How far a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecStage {
    /// Reading the request.
    Request,
    /// Finding the process that it names.
    Lookup,
    /// Finding out who its user is, or becoming that user.
    User,
    /// Setting its limits.
    Limits,
    /// Making the process and what it needs.
    Process,
    /// Entering its working directory.
    WorkingDirectory,
    /// Finding and executing the program.
    Exec,
}

impl ExecFailure {
    /// There is no such process.
    pub(super) fn unknown(subject: String) -> Self {
        Self {
            subject,
            kind: ExecFailureKind::NotFound,
            errno: None,
            stage: ExecStage::Lookup,
            text: "no such process".to_owned(),
        }
    }

    pub(crate) fn from_guest(failed: Failed, subject: String) -> Self {
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
            text: failed.text,
        }
    }
}

fn errno_text(errno: Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| {
        format!(": {}", std::io::Error::from_raw_os_error(errno))
    })
}
