use std::collections::BTreeSet;

use vmcell_wire::{
    FailureKind, Request, Stage,
    service::{Service as Wire, StartService, is_valid_name},
};

use super::{
    Service, ServiceCounts, ServiceError, ServiceSpec, ServiceStatus, order,
    published::ServicePorts,
};
use crate::{
    error::Error,
    port::{PortMapping, PublishedPort},
    random::random_bytes,
    result_budget::ResultBudget,
    session::{Closing, StreamEvent},
    vm::Vm,
};

/// The services of a VM: see [`service`](crate::service).
#[derive(Clone, Copy, Debug)]
pub struct Services<'a> {
    vm: &'a Vm,
}

/// What a start does if the service is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfSame {
    Refuse,
    Accept,
}

impl<'a> Services<'a> {
    pub(crate) fn new(vm: &'a Vm) -> Self {
        Self { vm }
    }

    /// Starts a service, and answers when the guest has taken it: its program
    /// runs, or waits for what it needs. [`Service::ready`] waits for the rest.
    ///
    /// One with this name that is over is started anew, with this spec; its log
    /// goes on.
    ///
    /// # Errors
    /// [`Error::Service`] if the name is none, such a service is not over,
    /// something that it needs is not there, or the program could not be
    /// started; [`Error::Invalid`] if the spec makes no sense; [`Error::Gone`]
    /// if the VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the service may or may not run.
    pub async fn start(self, name: &str, spec: ServiceSpec) -> Result<Service, Error> {
        self.start_if(name, &spec, IfSame::Refuse).await
    }

    /// As [`start`](Self::start), and fine with a service of this name that is
    /// not over, if its spec is the same. That one goes on.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    ///
    /// # Cancel safety
    /// If the future is dropped, the service may or may not run.
    pub async fn start_same(self, name: &str, spec: ServiceSpec) -> Result<Service, Error> {
        self.start_if(name, &spec, IfSame::Accept).await
    }

    /// Starts several services, each after those that it
    /// [needs](ServiceSpec::needs), and answers with their handles in the order
    /// of the list. It does not wait until they are ready: the guest starts
    /// each when what it needs is.
    ///
    /// Names, specs and needs are looked at before anything is started. If one
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
    /// [`ServiceError::Cycle`] if they need each other in a circle,
    /// [`ServiceError::UnknownNeed`] if one needs what is neither in the list
    /// nor in the guest, and see [`start`](Self::start).
    ///
    /// # Cancel safety
    /// If the future is dropped, any of them may run.
    pub async fn start_all(
        self,
        services: impl IntoIterator<Item = (impl Into<String>, ServiceSpec)>,
    ) -> Result<Vec<Service>, Error> {
        let services: Vec<(String, ServiceSpec)> = services
            .into_iter()
            .map(|(name, spec)| (name.into(), spec))
            .collect();
        let order = start_order(&services)?;
        for (name, spec) in &services {
            let elsewhere = spec
                .needed()
                .filter(|need| !services.iter().any(|(other, _)| other == need));
            if let Some(need) = self.missing(elsewhere).await? {
                let name = name.clone();
                return Err(ServiceError::UnknownNeed { name, need }.into());
            }
        }
        let mut started: Vec<(usize, Service)> = Vec::new();
        for place in order {
            let (name, spec) = &services[place];
            match self.start_if(name, spec, IfSame::Refuse).await {
                Ok(service) => started.push((place, service)),
                Err(error) => {
                    for (_, service) in started.iter().rev() {
                        // The first error is what the caller wants to know.
                        let _ = service.stop().await;
                        let _ = service.remove().await;
                    }
                    return Err(error);
                }
            }
        }
        started.sort_by_key(|(place, _)| *place);
        Ok(started.into_iter().map(|(_, service)| service).collect())
    }

    /// A handle of the service with this name.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is none, [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get(self, name: &str) -> Result<Service, Error> {
        if !is_valid_name(name) {
            let name = name.to_owned();
            return Err(ServiceError::Unknown { name }.into());
        }
        let service = self.handle(name);
        service.status().await?;
        Ok(service)
    }

    /// How all services are, in the order of their names, those that are over
    /// included. A guest has [at most 4096](Self::MAX_LISTED).
    ///
    /// # Errors
    /// [`Error::ResultLimit`] if the guest names more, [`Error::Gone`] if the
    /// VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(self) -> Result<Vec<ServiceStatus>, Error> {
        let mut list: Vec<ServiceStatus> = Vec::new();
        let mut budget = ResultBudget::new(
            "the list of services",
            Self::MAX_LISTED,
            // The texts of one are a few hundred bytes.
            usize::MAX,
            "name a service",
        );
        loop {
            let after = list.last().map_or("", |last| last.name.as_str());
            let request = Request::Service(Wire::List { after });
            let mut stream = self.vm.open(&request)?;
            let before = list.len();
            loop {
                match self.vm.explained(stream.next().await).await? {
                    StreamEvent::Service(state) => {
                        budget.add(0)?;
                        list.push(ServiceStatus::from_guest(*state));
                    }
                    StreamEvent::Closed(Closing::EndOfList { more: false }) => return Ok(list),
                    StreamEvent::Closed(Closing::EndOfList { more: true })
                        if list.len() > before =>
                    {
                        break;
                    }
                    _ => return Err(Error::unexpected_reply()),
                }
            }
        }
    }

    /// How many there are.
    ///
    /// # Errors
    /// See [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn count(self) -> Result<ServiceCounts, Error> {
        Ok(ServiceCounts::of(&self.list().await?))
    }

    /// The most services that [`list`](Self::list) returns. The agent allows
    /// fewer.
    pub const MAX_LISTED: usize = 4096;

    async fn start_if(
        self,
        name: &str,
        spec: &ServiceSpec,
        if_same: IfSame,
    ) -> Result<Service, Error> {
        let bytes = checked(name, spec)?;
        let service = self.handle(name);
        let mut to_publish = spec.published().to_vec();
        let open = service.ports();
        if !open.is_empty() {
            match service.status().await {
                Ok(status) if !status.phase.is_over() => {
                    to_publish.retain(|mapping| !open.iter().any(|port| serves(port, *mapping)));
                }
                // They are about to be closed.
                _ => service.close_ports().await,
            }
        }
        let ports = ServicePorts::publish(self.vm, name, &to_publish).await?;
        if let Err(error) = self.request_start(name, spec, &bytes, if_same).await {
            ports.close().await;
            return Err(error);
        }
        ports.keep(self.vm, name);
        Ok(service)
    }

    async fn request_start(
        self,
        name: &str,
        spec: &ServiceSpec,
        bytes: &[u8],
        if_same: IfSame,
    ) -> Result<(), Error> {
        let start = StartService {
            name,
            ticket: u64::from_le_bytes(random_bytes()?),
            if_same: if_same == IfSame::Accept,
            spec: bytes,
        };
        let mut stream = self.vm.open(&Request::Service(Wire::Start(start)))?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Service(state)) if state.name == name => Ok(()),
            StreamEvent::Closed(Closing::Failed(failed)) => {
                let reason = (failed.kind, failed.stage);
                if reason == (FailureKind::NotFound, Stage::Service)
                    && let Some(need) = self.missing(spec.needed()).await?
                {
                    let name = name.to_owned();
                    return Err(ServiceError::UnknownNeed { name, need }.into());
                }
                Err(ServiceError::of_start(failed, name, spec.program()).into())
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    fn handle(self, name: &str) -> Service {
        Service::new(self.vm.clone(), name.to_owned())
    }

    /// The first of these that there is not.
    async fn missing(self, needs: impl Iterator<Item = &str>) -> Result<Option<String>, Error> {
        let mut needs = needs.peekable();
        if needs.peek().is_none() {
            return Ok(None);
        }
        let list = self.list().await?;
        let known: BTreeSet<&str> = list.iter().map(|status| status.name.as_str()).collect();
        Ok(needs.find(|need| !known.contains(need)).map(str::to_owned))
    }
}

/// Puts services in the order in which [`Services::start_all`] starts them, for
/// who wants to know before there is a VM whether they make sense. What they need
/// beyond the list is not looked at.
///
/// ```
/// use vmcell::{Command, service::{ServiceSpec, in_order}};
///
/// let web = ServiceSpec::new(Command::new("web")).needs("db");
/// let db = ServiceSpec::new(Command::new("db"));
/// let [first, second] = &in_order([("web", web), ("db", db)])?[..] else {
///     panic!("there are two");
/// };
/// assert_eq!((first.0.as_str(), second.0.as_str()), ("db", "web"));
/// # Ok::<(), vmcell::Error>(())
/// ```
///
/// # Errors
/// [`Error::Service`] if a name is none or stands there twice, or they need each
/// other in a circle; [`Error::Invalid`] if a spec makes no sense.
pub fn in_order(
    services: impl IntoIterator<Item = (impl Into<String>, ServiceSpec)>,
) -> Result<Vec<(String, ServiceSpec)>, Error> {
    let services: Vec<(String, ServiceSpec)> = services
        .into_iter()
        .map(|(name, spec)| (name.into(), spec))
        .collect();
    let order = start_order(&services)?;
    let in_order = order.into_iter().map(|place| services[place].clone());
    Ok(in_order.collect())
}

/// Looks at names, specs and needs, and says in which order they can be started.
fn start_order(services: &[(String, ServiceSpec)]) -> Result<Vec<usize>, Error> {
    for (name, spec) in services {
        checked(name, spec)?;
    }
    let needs: Vec<(&str, Vec<&str>)> = services
        .iter()
        .map(|(name, spec)| (name.as_str(), spec.needed().collect()))
        .collect();
    Ok(order::by_needs(&needs)?)
}

/// Whether a port that is published is what is wanted.
fn serves(port: &PublishedPort, mapping: PortMapping) -> bool {
    let same_host = mapping.host.is_none_or(|host| host == port.host_port());
    same_host && port.guest_port() == mapping.guest
}

/// The bytes of a spec, if it and the name make sense.
fn checked(name: &str, spec: &ServiceSpec) -> Result<Vec<u8>, Error> {
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
