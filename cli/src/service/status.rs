//! The status of services as text.

use vmcell::{
    port::PortMapping,
    service::{ServicePhase, ServiceStatus},
};
use vmcell_cli::show::Table;

use crate::ps::human_readable;

pub(super) fn table<'a>(services: impl IntoIterator<Item = &'a ServiceStatus>) -> Table<8> {
    let mut table = Table::new([
        "NAME",
        "PHASE",
        "SINCE",
        "PID",
        "RESTARTS",
        "LAST EXIT",
        "PORTS",
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
            ports(service),
            service.phase.reason().unwrap_or_default(),
        ]);
    }
    table
}

fn ports(service: &ServiceStatus) -> String {
    let ports = service.published.iter();
    let ports: Vec<_> = ports.map(PortMapping::to_string).collect();
    match ports.is_empty() {
        true => "-".to_owned(),
        false => ports.join(","),
    }
}

/// Returns a message if a service did not keep running, else `None`.
pub(crate) fn warning(service: &ServiceStatus) -> Option<String> {
    let name = &service.name;
    let what = match (&service.phase, service.phase.reason()) {
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
