use vmcell_wire::{
    Outcome, Request,
    service::{ServiceRequest, WaitFor},
};

use super::{LogsRequest, ServiceError, ServiceFailure, ServiceStatus};
use crate::{error::Error, port::PublishedPort, printable, vm::Vm};

/// A handle of a service in a VM. Dropping it does not affect the service. Any
/// number of handles, in any number of programs, may refer to the same service.
///
/// ```no_run
/// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
/// use vmcell::{Command, service::{Probe, ServiceSpec}};
///
/// let spec = ServiceSpec::new(Command::new("my-server")).ready(Probe::tcp(8080));
/// let web = vm.services().start("web", spec).await?;
/// web.ready().await?;
/// // Later, perhaps in another program:
/// let web = vm.services().get("web").await?.expect("it was started");
/// println!("{:?}", web.status().await?.phase);
/// println!("{}", web.logs().tail(20).text().await?);
/// web.stop().await?;
/// web.remove().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    vm: Vm,
    name: String,
}

impl Service {
    pub(super) fn new(vm: Vm, name: String) -> Self {
        Self { vm, name }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the ports that this program has
    /// [published](super::ServiceSpec::publish) for it. Those that other programs have
    /// published, such as the owner of a VM that this program is
    /// [attached](crate::Vm::attach) to, are in its [status](Self::status).
    pub fn ports(&self) -> Vec<PublishedPort> {
        let mut ports = self.vm.ports().list();
        ports.retain(|port| port.service() == Some(&self.name));
        ports
    }

    /// Waits until it is ready. A service without a probe is ready as soon as
    /// it runs.
    ///
    /// The guest enforces the timeout of its [`Readiness`](super::Readiness). A
    /// guest that you do not trust may never reply: set a timeout of your own.
    ///
    /// # Errors
    /// [`ServiceError::Failed`] with its last log lines as soon as it has
    /// failed or was stopped; [`ServiceError::Unknown`] if the service no
    /// longer exists; [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe: the service is not affected.
    pub async fn ready(&self) -> Result<ServiceStatus, Error> {
        let until = WaitFor::Ready;
        let status = self
            .ask(ServiceRequest::Wait {
                name: &self.name,
                until,
            })
            .await?;
        match status.phase.is_ready() {
            true => Ok(status),
            false => Err(self.failure(status).await),
        }
    }

    /// Waits until it is finished: stopped or failed. A restart does not count.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if the service no longer exists,
    /// [`Error::Gone`] if the VM ended. A service that failed is not an error
    /// here: the status reports it.
    ///
    /// # Cancel safety
    /// Cancel safe: the service is not affected.
    pub async fn wait(&self) -> Result<ServiceStatus, Error> {
        let until = WaitFor::Ended;
        self.ask(ServiceRequest::Wait {
            name: &self.name,
            until,
        })
        .await
    }

    /// Returns its status.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if the service no longer exists,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn status(&self) -> Result<ServiceStatus, Error> {
        self.ask(ServiceRequest::GetState { name: &self.name })
            .await
    }

    /// Stops it with the signal and the grace period of its spec, and waits
    /// until all its processes are gone. Does nothing to a finished service.
    /// Closes its published ports.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if the service no longer exists,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It may or may not be stopped if the future is dropped.
    pub async fn stop(&self) -> Result<ServiceStatus, Error> {
        let status = self.ask(ServiceRequest::Stop { name: &self.name }).await?;
        if status.phase.is_finished() {
            self.close_ports().await;
        }
        Ok(status)
    }

    /// Stops it if it runs, and starts it with its current spec. Use
    /// [`ready`](Self::ready) to wait for it. Its published ports stay open if
    /// it was running. Those of a finished service are closed, and only a new
    /// [start](super::Services::start) publishes them again.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if the service no longer exists,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It may or may not be restarted if the future is dropped.
    pub async fn restart(&self) -> Result<ServiceStatus, Error> {
        self.ask(ServiceRequest::Restart { name: &self.name }).await
    }

    /// Removes a finished service, including its log.
    ///
    /// # Errors
    /// [`ServiceError::NotStopped`] if it still runs,
    /// [`ServiceError::Unknown`] if the service no longer exists,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It may or may not be removed if the future is dropped.
    pub async fn remove(&self) -> Result<(), Error> {
        let request = Request::Service(ServiceRequest::Remove { name: &self.name });
        match self.vm.request(&request).await?.outcome() {
            Outcome::Done => Ok(()),
            other => Err(ServiceError::refusal(&other, &self.name)),
        }
    }

    /// Returns a request for its log: what it printed, in all its runs.
    pub fn logs(&self) -> LogsRequest {
        LogsRequest::new(self.vm.clone(), self.name.clone())
    }

    /// Closes its ports at once. Otherwise they close when the guest reports
    /// that it finished.
    pub(super) async fn close_ports(&self) {
        self.vm.close_ports_of(&self.name).await;
    }

    async fn ask(&self, request: ServiceRequest<'_>) -> Result<ServiceStatus, Error> {
        match self.vm.request(&Request::Service(request)).await?.outcome() {
            Outcome::Service(state) if state.name == self.name => {
                let status = ServiceStatus::from_wire(&state);
                let mut status = status.ok_or_else(Error::unexpected_reply)?;
                status.add_ports(&self.vm.service_ports().await);
                Ok(status)
            }
            other => Err(ServiceError::refusal(&other, &self.name)),
        }
    }

    async fn failure(&self, status: ServiceStatus) -> Error {
        // The service, and with it the log, may have been removed meanwhile.
        let log = self.logs().tail(ServiceFailure::MAX_LINES).bytes().await;
        let log = log.unwrap_or_default();
        let cut = log.len().saturating_sub(ServiceFailure::MAX_BYTES);
        let log = printable(log.get(cut..).unwrap_or_default()).into_owned();
        ServiceError::Failed(Box::new(ServiceFailure { status, log })).into()
    }
}
