use std::collections::BTreeSet;

use vmcell_wire::{
    FailureKind, Outcome, Request, Stage,
    service::{ServiceRequest, StartService, is_valid_name},
};

use super::{
    NewPorts, Service, ServiceCounts, ServiceError, ServiceSpec, ServiceStatus,
    list::{self, ListError},
    order,
};
use crate::{error::Error, port::PortMapping, random::random_bytes, vm::Vm};

/// The services of a VM: see [`service`](crate::service).
#[derive(Clone, Debug)]
pub struct Services {
    vm: Vm,
}

/// What a start does if a service with the same spec is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfRunning {
    Fail,
    Reuse,
}

impl Services {
    pub(crate) fn new(vm: Vm) -> Self {
        Self { vm }
    }

    /// Starts a service, and returns when the guest has accepted it: its
    /// program runs, or waits for the services that it needs.
    /// [`Service::ready`] waits for the rest.
    ///
    /// A finished service with this name is started again, with this spec; its
    /// log continues.
    ///
    /// # Errors
    /// [`Error::Service`] if the name or the pattern of a log probe is invalid,
    /// a service with this name is not finished, a service that it needs does
    /// not exist, or the program could not be started; [`Error::Invalid`] if the
    /// spec is invalid in another way;
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the service may or may not run.
    pub async fn start(&self, name: &str, spec: ServiceSpec) -> Result<Service, Error> {
        self.start_with(name, &spec, IfRunning::Fail).await
    }

    /// Same as [`start`](Self::start), but if a service with this name and the
    /// same spec is not finished, returns that one.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    ///
    /// # Cancel safety
    /// If the future is dropped, the service may or may not run.
    pub async fn ensure_started(&self, name: &str, spec: ServiceSpec) -> Result<Service, Error> {
        self.start_with(name, &spec, IfRunning::Reuse).await
    }

    /// Starts several services, each after those that it
    /// [needs](ServiceSpec::needs), and returns their handles in the order of
    /// the list. Does not wait until they are ready: the guest starts each one
    /// when those that it needs are ready.
    ///
    /// Names, specs and needs are checked before anything is started. If one
    /// cannot be started, those that this call has started are stopped and
    /// removed again.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// use vmcell::{Command, service::{Probe, ServiceSpec}};
    ///
    /// let web = ServiceSpec::new(Command::new("web")).ready(Probe::tcp(80)).needs("db");
    /// let db = ServiceSpec::new(Command::new("db")).ready(Probe::unix("/run/db"));
    /// for service in vm.services().start_all([("web", web), ("db", db)]).await? {
    ///     service.ready().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ServiceError::Cycle`] if they need each other in a cycle,
    /// [`ServiceError::UnknownNeed`] if one needs a service that is neither in
    /// the list nor in the guest, and see [`start`](Self::start).
    ///
    /// # Cancel safety
    /// If the future is dropped, any of them may run.
    pub async fn start_all(
        &self,
        services: impl IntoIterator<Item = (impl Into<String>, ServiceSpec)>,
    ) -> Result<Vec<Service>, Error> {
        let services: Vec<(String, ServiceSpec)> = services
            .into_iter()
            .map(|(name, spec)| (name.into(), spec))
            .collect();
        let order = start_order(&services)?;
        for (name, spec) in &services {
            // Collected, because a lazy iterator would keep the future from being `Send`.
            let elsewhere: Vec<_> = spec
                .needed()
                .filter(|need| !services.iter().any(|(other, _)| other == need))
                .collect();
            if let Some(need) = self.missing(&elsewhere).await? {
                let name = name.clone();
                return Err(ServiceError::UnknownNeed { name, need }.into());
            }
        }
        let mut started: Vec<(usize, Service)> = Vec::new();
        for index in order {
            let (name, spec) = &services[index];
            match self.start_with(name, spec, IfRunning::Fail).await {
                Ok(service) => started.push((index, service)),
                Err(error) => {
                    for (_, service) in started.iter().rev() {
                        // The caller gets the first error only.
                        let _ = service.stop().await;
                        let _ = service.remove().await;
                    }
                    return Err(error);
                }
            }
        }
        started.sort_by_key(|(index, _)| *index);
        Ok(started.into_iter().map(|(_, service)| service).collect())
    }

    /// Returns a handle of the service with this name, or `None` if there is
    /// none.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get(&self, name: &str) -> Result<Option<Service>, Error> {
        if !is_valid_name(name) {
            return Ok(None);
        }
        let service = self.handle(name);
        match service.status().await {
            Ok(_) => Ok(Some(service)),
            Err(Error::Service(ServiceError::Unknown { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the status of all services, sorted by name, including finished
    /// ones. A guest has [at most 4096](Self::MAX_LISTED).
    ///
    /// # Errors
    /// [`Error::ResultLimit`] if the guest reports more, [`Error::Gone`] if the
    /// VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self) -> Result<Vec<ServiceStatus>, Error> {
        let listed = list::list(self.vm.session()).await;
        let mut list = match listed {
            Ok(list) => list,
            Err(ListError::Open(error)) => return Err(self.vm.open_error(error)),
            Err(ListError::Link(error)) => return Err(self.vm.explain(error).await),
            Err(ListError::Guest(error)) => return Err(error),
        };
        if !list.is_empty() {
            let ports = self.vm.service_ports().await;
            list.iter_mut().for_each(|status| status.add_ports(&ports));
        }
        Ok(list)
    }

    /// Returns the number of services.
    ///
    /// # Errors
    /// See [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn count(&self) -> Result<ServiceCounts, Error> {
        Ok(ServiceCounts::of(&self.list().await?))
    }

    /// The most services that [`list`](Self::list) returns. The agent allows
    /// fewer.
    pub const MAX_LISTED: usize = 4096;

    async fn start_with(
        &self,
        name: &str,
        spec: &ServiceSpec,
        if_running: IfRunning,
    ) -> Result<Service, Error> {
        let bytes = validate(name, spec)?;
        let service = self.handle(name);
        let ports = match spec.published() {
            [] => None,
            ports => Some(self.publish(&service, ports).await?),
        };
        let started = self.request_start(name, spec, &bytes, if_running).await;
        match (started, ports) {
            (Ok(()), Some(ports)) => ports.close_when_finished(&self.vm, name).await?,
            (Err(error), Some(ports)) => {
                ports.close().await;
                return Err(error);
            }
            (started, None) => started?,
        }
        Ok(service)
    }

    /// Publishes the ports of a service that is about to be started, unless it runs and has
    /// them.
    async fn publish(&self, service: &Service, ports: &[PortMapping]) -> Result<NewPorts, Error> {
        let mut to_publish = ports.to_vec();
        match service.status().await {
            Ok(status) if !status.phase.is_finished() => {
                to_publish
                    .retain(|port| !status.published.iter().any(|open| matches(*open, *port)));
            }
            // The service has finished: its ports are about to be closed
            // anyway.
            Ok(_) => service.close_ports().await,
            Err(Error::Service(ServiceError::Unknown { .. })) => {}
            Err(error) => return Err(error),
        }
        self.vm.publish_for(service.name(), &to_publish).await
    }

    async fn request_start(
        &self,
        name: &str,
        spec: &ServiceSpec,
        bytes: &[u8],
        if_running: IfRunning,
    ) -> Result<(), Error> {
        let start = StartService {
            name,
            ticket: u64::from_le_bytes(random_bytes()?),
            if_same: if_running == IfRunning::Reuse,
            spec: bytes,
        };
        let request = Request::Service(ServiceRequest::Start(start));
        match self.vm.request(&request).await?.outcome() {
            Outcome::Service(state) if state.name == name => Ok(()),
            Outcome::Failed(failure) => {
                let reason = (failure.kind, failure.stage);
                if reason == (FailureKind::NotFound, Stage::Service)
                    && let Some(need) = self.missing(&spec.needed().collect::<Vec<_>>()).await?
                {
                    let name = name.to_owned();
                    return Err(ServiceError::UnknownNeed { name, need }.into());
                }
                Err(ServiceError::of_start(&failure, name, spec.program()).into())
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    fn handle(&self, name: &str) -> Service {
        Service::new(self.vm.clone(), name.to_owned())
    }

    /// Returns the first of these services that does not exist.
    async fn missing(&self, needs: &[&str]) -> Result<Option<String>, Error> {
        if needs.is_empty() {
            return Ok(None);
        }
        let list = self.list().await?;
        let known: BTreeSet<&str> = list.iter().map(|status| status.name.as_str()).collect();
        let missing = needs.iter().find(|need| !known.contains(*need));
        Ok(missing.map(|need| (*need).to_owned()))
    }
}

/// Returns services in the order in which [`Services::start_all`] starts them,
/// to check them before there is a VM. Ignores needs that are not in the list.
///
/// ```
/// use vmcell::{Command, service::{ServiceSpec, sort_by_needs}};
///
/// let web = ServiceSpec::new(Command::new("web")).needs("db");
/// let db = ServiceSpec::new(Command::new("db"));
/// let [first, second] = &sort_by_needs([("web", web), ("db", db)])?[..] else {
///     panic!("there are two");
/// };
/// assert_eq!((first.0.as_str(), second.0.as_str()), ("db", "web"));
/// # Ok::<(), vmcell::Error>(())
/// ```
///
/// # Errors
/// [`Error::Service`] if a name is invalid or a duplicate, or the services need
/// each other in a cycle; [`Error::Invalid`] if a spec is invalid.
pub fn sort_by_needs(
    services: impl IntoIterator<Item = (impl Into<String>, ServiceSpec)>,
) -> Result<Vec<(String, ServiceSpec)>, Error> {
    let services: Vec<(String, ServiceSpec)> = services
        .into_iter()
        .map(|(name, spec)| (name.into(), spec))
        .collect();
    let order = start_order(&services)?;
    let sorted = order.into_iter().map(|index| services[index].clone());
    Ok(sorted.collect())
}

/// Checks names, specs and needs, and returns the order in which they can be
/// started.
fn start_order(services: &[(String, ServiceSpec)]) -> Result<Vec<usize>, Error> {
    for (name, spec) in services {
        validate(name, spec)?;
    }
    let needs: Vec<(&str, Vec<&str>)> = services
        .iter()
        .map(|(name, spec)| (name.as_str(), spec.needed().collect()))
        .collect();
    Ok(order::sort(&needs)?)
}

/// Returns whether a published port is the one that the mapping asks for.
fn matches(open: PortMapping, mapping: PortMapping) -> bool {
    let same_host = mapping.host.is_none() || mapping.host == open.host;
    same_host && open.guest == mapping.guest
}

/// Checks a name and a spec, and returns the encoded spec.
fn validate(name: &str, spec: &ServiceSpec) -> Result<Vec<u8>, Error> {
    if !is_valid_name(name) {
        let name = name.to_owned();
        return Err(ServiceError::BadName { name }.into());
    }
    if spec.needed().any(|need| need == name) {
        let path = vec![name.to_owned(), name.to_owned()];
        return Err(ServiceError::Cycle { path }.into());
    }
    spec.to_bytes()
}
