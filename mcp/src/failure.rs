//! Why a tool could not do what it was asked to.

use std::{borrow::Cow, error::Error as _, fmt};

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use vmcell::{Error, service::ServiceError, workspace::WorkspaceError};

/// An error of a tool, for a model: what happened, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Cow<'static, str>,
    message: String,
    /// In terms of the tools.
    remedy: Option<Cow<'static, str>>,
    /// What is returned instead, if the tool has its own way to say what went wrong.
    answer: Option<Value>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            remedy: None,
            answer: None,
        }
    }

    /// The tool says in its answer what went wrong.
    pub(crate) fn answered(answer: Value) -> Self {
        Self {
            answer: Some(answer),
            ..Self::new("", "")
        }
    }

    /// The arguments are wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid", message)
    }

    /// This program is wrong.
    pub(crate) fn internal(error: &dyn fmt::Display) -> Self {
        Self::new("internal", error.to_string())
    }

    pub(crate) fn with_remedy(mut self, remedy: impl Into<Cow<'static, str>>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        match self.answer {
            Some(answer) => CallToolResult::structured_error(answer),
            None => CallToolResult::structured_error(json!({ "error": self.into_json() })),
        }
    }

    /// Returns its code, and what to do.
    pub(crate) fn into_json(self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(remedy) = self.remedy {
            error["what_to_do"] = remedy.into();
        }
        error
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some say what their cause says.
            if !message.ends_with(&text) {
                message += ": ";
                message += &text;
            }
            cause = error.source();
        }
        Self {
            code: error.code().into(),
            message,
            remedy: remedy(&error).map(Cow::Borrowed),
            answer: None,
        }
    }
}

impl From<vmcell::disk::DiskError> for Failure {
    fn from(error: vmcell::disk::DiskError) -> Self {
        Error::from(error).into()
    }
}

impl From<vmcell::secret::SecretError> for Failure {
    fn from(error: vmcell::secret::SecretError) -> Self {
        Error::from(error).into()
    }
}

/// Returns which tool helps.
fn remedy(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Workspace(error) => match error {
            WorkspaceError::NotFound { .. } => "workspace_list lists all workspaces",
            WorkspaceError::State { .. } => {
                "workspace_status shows the state; workspace_start starts a stopped workspace, \
                 workspace_stop stops a running one"
            }
            WorkspaceError::NoSnapshot { .. } => "snapshot_list lists the snapshots",
            WorkspaceError::NoSecret { .. } => {
                "workspace_status lists its secrets; they are given to workspace_create"
            }
            WorkspaceError::DiskFull { .. } => {
                "delete workspaces or snapshots that are not needed, or ask the user for room"
            }
            _ => return None,
        },
        Error::Service(error) => match error {
            ServiceError::Unknown { .. } => "service_list lists the services",
            ServiceError::Running { .. } => "service_stop stops it",
            _ => "service_logs shows what the service has printed",
        },
        Error::PatchMismatch(_) => {
            "nothing was changed: read the file with workspace_file_read, and send a patch whose \
             context it has"
        }
        Error::Paused => "workspace_start resumes it",
        _ => return None,
    })
}
