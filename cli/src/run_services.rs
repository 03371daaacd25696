//! The services and published ports of `vmcell run`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};
use vmcell::{
    Command, Error, Vm,
    port::{PortMapping, PublishedPort},
    service::{FailureReason, Service, ServiceError, ServiceSpec, ServiceStatus, sort_by_needs},
};

use crate::{failure::report, port, service::PlannedService, start_options::StartSettings};

/// How long a guest may take to answer once the command has ended. After that
/// the VM is ended anyway.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a guest may take beyond the ready timeouts of the services.
const READY_MARGIN: Duration = Duration::from_secs(30);

/// The services and ports to start with the command.
#[derive(Clone)]
pub(crate) struct RunServices {
    /// In the order in which they are started.
    services: Vec<(String, ServiceSpec)>,
    /// When all must be ready, by this machine's clock: the guest's is not
    /// trusted.
    ready_timeout: Duration,
    ports: Vec<PortMapping>,
}

/// The services and ports that were started.
pub(crate) struct StartedServices {
    services: Vec<Service>,
    ports: Vec<PublishedPort>,
}

impl RunServices {
    /// Checks the options before a VM boots, so that a mistake fails at once.
    /// Services run as the command's user and in its directory.
    pub(crate) fn new(
        services: Vec<PlannedService>,
        start: &StartSettings,
        ports: Vec<PortMapping>,
    ) -> Result<Self, Error> {
        // Each may have to wait for the one before it.
        let ready_timeout = services
            .iter()
            .map(|service| service.settings.ready_timeout())
            .fold(READY_MARGIN, Duration::saturating_add);
        let services = services.into_iter().map(|service| {
            let command = start.clone().apply_to(Command::shell(service.line));
            (service.name, service.settings.into_spec(command))
        });
        Ok(Self {
            services: sort_by_needs(services)?,
            ready_timeout,
            ports,
        })
    }

    /// Starts everything. Returns when all services are ready and all ports are
    /// open.
    pub(crate) async fn start(self, vm: &Vm) -> anyhow::Result<StartedServices> {
        let services = match self.services.is_empty() {
            true => Vec::new(),
            false => vm.services().start_all(self.services).await?,
        };
        timeout(self.ready_timeout, all_ready(&services))
            .await
            .unwrap_or_else(|_| Err(Error::Unresponsive(self.ready_timeout).into()))?;
        let mut ports = Vec::new();
        for mapping in self.ports {
            ports.push(vm.ports().publish(mapping).await?);
        }
        // Printed with `--json` too: the JSON result comes at the end, too late
        // to use the port.
        for published in &ports {
            report(&format!("published {}", port::describe(published)));
        }
        Ok(StartedServices { services, ports })
    }
}

impl StartedServices {
    /// Returns the status of the services that the guest reports in time.
    pub(crate) async fn statuses(&self) -> Vec<ServiceStatus> {
        let mut statuses = Vec::new();
        for service in &self.services {
            if let Ok(Ok(status)) = timeout(REPLY_TIMEOUT, service.status()).await {
                statuses.push(status);
            }
        }
        statuses
    }

    /// Adds services and ports to the result of a command.
    pub(crate) fn add_to(&self, result: &mut Value, services: &[ServiceStatus]) {
        result["services"] = json!(services);
        result["published"] = json!(self.ports);
    }

    /// Stops the services in reverse order, so that a service ends before what
    /// it needs.
    pub(crate) async fn stop(self) {
        for service in self.services.iter().rev() {
            // An error does not matter: the service ends with the VM.
            let _ = timeout(ServiceSpec::DEFAULT_GRACE + REPLY_TIMEOUT, service.stop()).await;
        }
    }
}

/// Waits until all services are ready, or until one fails.
async fn all_ready(services: &[Service]) -> anyhow::Result<()> {
    let mut waiting = JoinSet::new();
    for service in services {
        let service = service.clone();
        waiting.spawn(async move { service.ready().await });
    }
    let mut blocked = None;
    while let Some(outcome) = waiting.join_next().await {
        match outcome? {
            Ok(_) => {}
            // The failure of the needed service explains more, and comes now.
            Err(error) if is_failed_need(&error) => blocked = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    blocked.map_or(Ok(()), |error| Err(error.into()))
}

fn is_failed_need(error: &Error) -> bool {
    let Error::Service(ServiceError::Failed(failure)) = error else {
        return false;
    };
    matches!(failure.reason(), Some(FailureReason::Need(_)))
}
