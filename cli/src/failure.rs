//! How failures are told.

use serde_json::{Value, json};
use vmcell::{Error, ExecStage, service::ServiceError};
pub(crate) use vmcell_cli::show::voice::print_json;
use vmcell_cli::show::voice::{self, with_causes};

/// Tells people or machines what went wrong.
pub(crate) fn report(error: &anyhow::Error, json: bool) {
    if json {
        print_json(&json!({ "error": error_as_json(error) }));
    } else {
        say(&message(error));
    }
}

/// What machines are told of an error.
pub(crate) fn error_as_json(error: &anyhow::Error) -> Value {
    let mut told = json!({ "code": code(error), "message": message(error) });
    if let Some(cause) = error.downcast_ref::<Error>().and_then(Error::cause) {
        told["cause"] = cause.name().into();
    }
    told
}

fn message(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Error>() {
        Some(error) => words(error),
        None => format!("{error:#}"),
    }
}

/// Says something on standard error, in our own name.
pub(crate) fn say(text: &str) {
    voice::say("vmcell", text);
}

/// The words of an error, with what to do next in terms of this program.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::NoSuchVm { id } => {
            format!("no VM with the id {id:?} runs: `vmcell ps` lists those that do")
        }
        Error::Exec(failure) if failure.stage == ExecStage::Lookup => {
            format!("{failure}: `vmcell ps ID` lists the processes of a VM")
        }
        Error::Service(ServiceError::Unknown { name }) => {
            format!("there is no service {name:?}: `vmcell service ls ID` lists those of a VM")
        }
        Error::Service(ServiceError::Running { name }) => format!(
            "a service {name:?} runs already: `vmcell service stop ID {name}` ends it, and with \
             --if-same one that is the same will do"
        ),
        Error::Service(ServiceError::NotStopped { name }) => {
            format!("the service {name:?} still runs: `vmcell service stop ID {name}` ends it")
        }
        Error::Host { source, .. } => format!("{error}: {source}"),
        Error::Tree(failure) => with_causes(&failure.to_string(), failure),
        _ => error.to_string(),
    }
}

fn code(error: &anyhow::Error) -> &'static str {
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.code();
    }
    match error.is::<vmcell_rootfs::Error>() {
        true => "environment",
        false => "host",
    }
}
