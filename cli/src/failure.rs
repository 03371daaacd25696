//! Error messages, and errors as JSON.

use std::fmt;

use serde_json::{Value, json};
use vmcell::{
    Error, ExecStage, service::ServiceError, snapshot::SnapshotError, workspace::WorkspaceError,
};
pub(crate) use vmcell_cli::show::message::print_json;
use vmcell_cli::show::{
    self,
    message::{self, with_causes},
    name,
};

use crate::exit_code;

/// What an error means in terms of the command that failed, in place of the
/// message that others get.
#[derive(Debug)]
pub(crate) struct Reworded(pub(crate) String);

impl fmt::Display for Reworded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Explains arguments that are wrong only together with an image, as the parser explains others,
/// and returns the exit code.
pub(crate) fn report_usage(error: &clap::Error) -> u8 {
    // As the parser, it has nowhere else to say it.
    let _ = error.print();
    exit_code::WRONG_USAGE
}

/// Prints an error, on standard error or as JSON on standard output.
pub(crate) fn report_error(error: &anyhow::Error, json: bool) {
    if json {
        print_json(&json!({ "error": error_as_json(error) }));
    } else {
        report(&describe_any(error));
    }
}

/// Returns an error as JSON.
pub(crate) fn error_as_json(error: &anyhow::Error) -> Value {
    let mut object = match error.downcast_ref::<Error>() {
        Some(error) => show::json::value(error),
        None => json!({ "code": code_of_other(error) }),
    };
    // With what to do next in terms of this program.
    object["message"] = describe_any(error).into();
    object
}

/// Returns the message of an error, as [`describe`] does.
pub(crate) fn describe_any(error: &anyhow::Error) -> String {
    if let Some(Reworded(text)) = error.downcast_ref() {
        return text.clone();
    }
    match error.downcast_ref::<Error>() {
        Some(error) => describe(error),
        None => format!("{error:#}"),
    }
}

/// Prints a message on standard error, prefixed with the program's name.
pub(crate) fn report(text: &str) {
    message::report("vmcell", text);
}

/// Returns the message of an error, with what to do next in terms of this
/// program.
pub(crate) fn describe(error: &Error) -> String {
    match error {
        Error::NoSuchVm { id } => {
            format!("no running VM has the id {id:?}: `vmcell ps` lists running VMs")
        }
        Error::Exec(failure) if failure.stage == ExecStage::Lookup => {
            format!("{failure}: `vmcell ps ID` lists the processes of a VM")
        }
        Error::Service(ServiceError::Unknown { name }) => {
            format!("there is no service {name:?}: `vmcell service ls ID` lists all services")
        }
        Error::Service(ServiceError::Running { name }) => format!(
            "a service {name:?} runs already: `vmcell service stop ID {name}` stops it, and \
             --if-same accepts one with the same settings"
        ),
        Error::Service(ServiceError::NotStopped { name }) => {
            format!("the service {name:?} still runs: `vmcell service stop ID {name}` stops it")
        }
        Error::Workspace(failure @ WorkspaceError::NotFound { .. }) => {
            format!("{failure}: `vmcell workspace list` lists all workspaces")
        }
        Error::Workspace(failure @ WorkspaceError::NoSnapshot { .. }) => {
            format!("{failure}: `vmcell workspace snapshot list ID` lists all snapshots")
        }
        Error::Workspace(failure @ WorkspaceError::NoSecret { .. }) => {
            format!("{failure}: `vmcell secret list ID` lists its secrets")
        }
        Error::Secret(failure) => with_causes(&failure.to_string(), failure),
        Error::Snapshot(failure @ SnapshotError::Io { source, .. }) => {
            format!("{failure}: {source}")
        }
        Error::Snapshot(SnapshotError::Image { path, .. }) if !path.exists() => format!(
            "the image {} of the snapshot is not there: `vmcell restore --image FILE` restores it \
             with an image that was moved",
            name::printable(path)
        ),
        Error::Snapshot(failure @ SnapshotError::Differs { .. }) => format!(
            "{failure}. Take the snapshot again here; a template is made again after `vmcell \
             template rm NAME`"
        ),
        Error::Host { source, .. } => format!("{error}: {source}"),
        Error::Tree(failure) => with_causes(&failure.to_string(), failure),
        _ => error.to_string(),
    }
}

fn code_of_other(error: &anyhow::Error) -> &'static str {
    match error.is::<vmcell_rootfs::Error>() {
        true => "environment",
        false => "host",
    }
}
