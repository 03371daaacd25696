//! What a command of `vmcell run` has around it: services, and ports through
//! which they are reached from outside.

use std::time::Duration;

use serde_json::Value;
use tokio::{task::JoinSet, time::timeout};
use vmcell::{
    Command, Error, Vm,
    port::{PortMapping, PublishedPort},
    service::{FailureReason, Service, ServiceError, ServiceSpec, ServiceStatus, sort_by_needs},
};

use crate::{
    failure::say,
    port,
    service::{self, Planned},
    start_options::Start,
};

/// How long a guest may take to answer when the command has ended. What it has
/// not done by then is not worth waiting for: the VM ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a guest may take beyond what services have to become ready.
const MARGIN: Duration = Duration::from_secs(30);

/// What is wanted.
pub(crate) struct Surroundings {
    /// In the order in which they are started.
    services: Vec<(String, ServiceSpec)>,
    /// When they must be ready, by the clock of this machine: that of a guest
    /// is its own affair.
    longest: Duration,
    ports: Vec<PortMapping>,
}

/// What is there.
pub(crate) struct Present {
    services: Vec<Service>,
    ports: Vec<PublishedPort>,
}

impl Surroundings {
    /// Looks at what is wanted before a VM is booted, so that a mistake costs no
    /// time. Services run where and as whom the command does.
    pub(crate) fn new(
        services: Vec<Planned>,
        start: &Start,
        ports: Vec<PortMapping>,
    ) -> Result<Self, Error> {
        // Each may have to wait for the one before it.
        let longest = services
            .iter()
            .map(|service| service.settings.longest())
            .fold(MARGIN, Duration::saturating_add);
        let services = services.into_iter().map(|service| {
            let command = start.clone().apply_to(Command::shell(service.line));
            (service.name, service.settings.into_spec(command))
        });
        Ok(Self {
            services: sort_by_needs(services)?,
            longest,
            ports,
        })
    }

    /// Returns when all services are ready and all ports are open.
    pub(crate) async fn set_up(self, vm: &Vm) -> anyhow::Result<Present> {
        let services = match self.services.is_empty() {
            true => Vec::new(),
            false => vm.services().start_all(self.services).await?,
        };
        timeout(self.longest, all_ready(&services))
            .await
            .unwrap_or_else(|_| Err(Error::Unresponsive(self.longest).into()))?;
        let mut ports = Vec::new();
        for mapping in self.ports {
            ports.push(vm.ports().publish(mapping).await?);
        }
        // Nobody could learn it in time from a result that comes at the end, so
        // it is said to machines too.
        for published in &ports {
            say(&format!("published {}", port::words(published)));
        }
        Ok(Present { services, ports })
    }
}

impl Present {
    /// How the services are, as far as the guest says so.
    pub(crate) async fn look(&self) -> Vec<ServiceStatus> {
        let mut seen = Vec::new();
        for service in &self.services {
            if let Ok(Ok(status)) = timeout(PATIENCE, service.status()).await {
                seen.push(status);
            }
        }
        seen
    }

    /// Adds to the result of a command what was around it when it ended.
    pub(crate) fn add_to(&self, result: &mut Value, services: &[ServiceStatus]) {
        let services = services.iter().map(service::as_json);
        result["services"] = services.collect();
        result["published"] = self.ports.iter().map(port::as_json).collect();
    }

    /// Stops the services, those first that need others.
    pub(crate) async fn stop(self) {
        for service in self.services.iter().rev() {
            // It ends with the VM, whatever comes of this.
            let _ = timeout(ServiceSpec::DEFAULT_GRACE + PATIENCE, service.stop()).await;
        }
    }
}

/// Waits for all of them, or until one fails.
async fn all_ready(services: &[Service]) -> anyhow::Result<()> {
    let mut waiting = JoinSet::new();
    for service in services {
        let service = service.clone();
        waiting.spawn(async move { service.ready().await });
    }
    let mut held_up = None;
    while let Some(outcome) = waiting.join_next().await {
        match outcome? {
            Ok(_) => {}
            // What it needs has more to say, and says it now.
            Err(error) if is_for_a_need(&error) => held_up = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    held_up.map_or(Ok(()), |error| Err(error.into()))
}

fn is_for_a_need(error: &Error) -> bool {
    let Error::Service(ServiceError::Failed(failure)) = error else {
        return false;
    };
    matches!(failure.reason(), Some(FailureReason::Need(_)))
}
