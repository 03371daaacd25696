//! The status of services, as text and as JSON.

use serde_json::{Value, json};
use vmcell::service::{ServicePhase, ServiceStatus};
use vmcell_cli::show::Table;

use crate::{ps::human_readable, result::add_end};

pub(super) fn table<'a>(services: impl IntoIterator<Item = &'a ServiceStatus>) -> Table<7> {
    let mut table = Table::new([
        "NAME",
        "PHASE",
        "SINCE",
        "PID",
        "RESTARTS",
        "LAST EXIT",
        "REASON",
    ]);
    for service in services {
        table.add([
            service.name.clone(),
            service.phase.name().to_owned(),
            human_readable(service.since),
            service.pid.map_or("-".to_owned(), |pid| pid.to_string()),
            service.restarts.to_string(),
            last_exit(service).unwrap_or("-".to_owned()),
            reason(&service.phase).unwrap_or_default(),
        ]);
    }
    table
}

/// Returns the status of a service as JSON. What is unknown or does not apply
/// is null.
pub(crate) fn as_json(service: &ServiceStatus) -> Value {
    let trouble = match &service.phase {
        ServicePhase::Failed(trouble) => Some(trouble.name()),
        _ => None,
    };
    let last_exit = service.last_exit.map(|exit| {
        let mut object = json!({});
        add_end(&mut object, Some(&exit), Some(exit.cause));
        object
    });
    json!({
        "name": service.name,
        "phase": service.phase.name(),
        "trouble": trouble,
        "reason": reason(&service.phase),
        "since_seconds": service.since.as_secs_f64(),
        "pid": service.pid,
        "restarts": service.restarts,
        "last_exit": last_exit,
        "log": { "bytes": service.log.end, "kept_from": service.log.start },
    })
}

/// Returns a message if a service did not keep running, else `None`.
pub(crate) fn warning(service: &ServiceStatus) -> Option<String> {
    let name = &service.name;
    let what = match (&service.phase, reason(&service.phase)) {
        (ServicePhase::Failed(_), Some(reason)) => format!("has failed: {reason}"),
        (ServicePhase::Stopped, _) => "has ended".to_owned(),
        (ServicePhase::Restarting, _) => "has ended, and was about to be restarted".to_owned(),
        _ => match service.restarts {
            0 => return None,
            1 => "was restarted".to_owned(),
            times => format!("was restarted {times} times"),
        },
    };
    let exit = last_exit(service).map_or(String::new(), |exit| format!(" ({exit})"));
    Some(format!("the service {name:?} {what}{exit}"))
}

fn last_exit(service: &ServiceStatus) -> Option<String> {
    service.last_exit.map(|exit| exit.cause.to_string())
}

/// Returns why a service is in this phase, if the phase does not say it.
fn reason(phase: &ServicePhase) -> Option<String> {
    match phase {
        ServicePhase::Waiting { need } => Some(format!("it waits for {need:?}")),
        ServicePhase::Failed(trouble) => Some(trouble.to_string()),
        _ => None,
    }
}
