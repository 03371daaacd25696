use std::fmt;

use serde::{Deserialize, Serialize};

use super::ToolResult;
use crate::{error::Error, receipt::ReceiptError};

/// Why a call failed. Each variant asks for something else: see [`retry`](Self::retry).
///
/// Texts have no values of secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFailure {
    /// The policy does not allow it. Nothing was started.
    #[error("the policy does not allow it: {reason}")]
    PolicyDenied {
        /// The id of the call.
        audit_id: String,
        /// What is not allowed.
        reason: String,
    },

    /// The request is not valid, or over a limit. Nothing was started.
    #[error("the request is not valid: {reason}")]
    Invalid {
        /// The id of the call.
        audit_id: String,
        /// What is wrong.
        reason: String,
    },

    /// The command, or the whole call, took too long and was ended.
    #[error("it was ended after {seconds} s")]
    TimedOut {
        /// The limit.
        seconds: u64,
        /// What it printed until then.
        result: Box<ToolResult>,
    },

    /// The command could not be started, exited with another code than 0, or was killed.
    #[error("the command failed: {reason}")]
    GuestCommand {
        /// How.
        reason: String,
        /// What it printed.
        result: Box<ToolResult>,
    },

    /// The VM could not be started, or was lost. What the command did is not known.
    #[error("the sandbox could not be used: {reason}")]
    Transport {
        /// The id of the call.
        audit_id: String,
        /// Why, with its causes.
        reason: String,
        /// The error of the library, if it is one.
        source: Option<Box<Error>>,
    },

    /// The command has ended, but the sandbox could not be removed or kept as it was asked,
    /// or its receipt could not be written.
    #[error("the command has ended, but the sandbox was not cleaned up: {reason}")]
    Cleanup {
        /// Why.
        reason: String,
        /// The result of the command.
        result: Box<ToolResult>,
    },
}

/// Which failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolFailureKind {
    /// [`ToolFailure::PolicyDenied`]
    PolicyDenied,
    /// [`ToolFailure::Invalid`]
    InvalidRequest,
    /// [`ToolFailure::TimedOut`]
    TimedOut,
    /// [`ToolFailure::GuestCommand`]
    GuestCommand,
    /// [`ToolFailure::Transport`]
    Transport,
    /// [`ToolFailure::Cleanup`]
    Cleanup,
}

/// Whether it makes sense to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Retry {
    /// Not before the application grants it.
    AfterGrant,
    /// With another request.
    AfterChange,
    /// With more time, or with less to do.
    WithMoreTime,
    /// The same request, once, after a moment. The command may have run already.
    Later,
    /// Do not repeat the command, which has run: clean up first.
    AfterCleanup,
}

impl ToolFailureKind {
    /// Returns its name, which never changes, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::PolicyDenied => "policy_denied",
            Self::InvalidRequest => "invalid_request",
            Self::TimedOut => "timed_out",
            Self::GuestCommand => "guest_command",
            Self::Transport => "transport",
            Self::Cleanup => "cleanup",
        }
    }

    /// Returns whether it makes sense to try again.
    pub fn retry(self) -> Retry {
        match self {
            Self::PolicyDenied => Retry::AfterGrant,
            Self::InvalidRequest | Self::GuestCommand => Retry::AfterChange,
            Self::TimedOut => Retry::WithMoreTime,
            Self::Transport => Retry::Later,
            Self::Cleanup => Retry::AfterCleanup,
        }
    }
}

impl ToolFailure {
    /// Returns which failure it is.
    pub fn kind(&self) -> ToolFailureKind {
        match self {
            Self::PolicyDenied { .. } => ToolFailureKind::PolicyDenied,
            Self::Invalid { .. } => ToolFailureKind::InvalidRequest,
            Self::TimedOut { .. } => ToolFailureKind::TimedOut,
            Self::GuestCommand { .. } => ToolFailureKind::GuestCommand,
            Self::Transport { .. } => ToolFailureKind::Transport,
            Self::Cleanup { .. } => ToolFailureKind::Cleanup,
        }
    }

    /// Returns whether it makes sense to try again.
    pub fn retry(&self) -> Retry {
        self.kind().retry()
    }

    /// Returns the result of the command, if it ran.
    pub fn result(&self) -> Option<&ToolResult> {
        match self {
            Self::TimedOut { result, .. }
            | Self::GuestCommand { result, .. }
            | Self::Cleanup { result, .. } => Some(result),
            Self::PolicyDenied { .. } | Self::Invalid { .. } | Self::Transport { .. } => None,
        }
    }

    /// Returns the id of the call.
    pub fn audit_id(&self) -> &str {
        match self {
            Self::PolicyDenied { audit_id, .. }
            | Self::Invalid { audit_id, .. }
            | Self::Transport { audit_id, .. } => audit_id,
            Self::TimedOut { result, .. }
            | Self::GuestCommand { result, .. }
            | Self::Cleanup { result, .. } => &result.audit_id,
        }
    }

    pub(super) fn receipt(audit_id: &str, error: &ReceiptError) -> Self {
        let cause = std::error::Error::source(error);
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        Self::Transport {
            audit_id: audit_id.to_owned(),
            reason: format!("{error}{cause}"),
            source: None,
        }
    }
}

impl fmt::Display for ToolFailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AfterGrant => "do not retry until it is granted",
            Self::AfterChange => "change the request",
            Self::WithMoreTime => "retry with a longer timeout, or with less to do",
            Self::Later => "retry once, later",
            Self::AfterCleanup => "do not repeat the command: clean up",
        })
    }
}
