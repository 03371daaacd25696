use vmcell_wire::{
    Request,
    service::{Service as Wire, Until},
};

use super::{LogsRequest, ServiceError, ServiceFailure, ServiceStatus, published::ports_of};
use crate::{
    error::Error,
    port::PublishedPort,
    printable,
    session::{Closing, StreamEvent},
    vm::Vm,
};

/// A service in a VM: a handle that decides over nothing. Dropping it changes
/// nothing; any number of handles, in any number of programs, may mean the same
/// service.
///
/// ```no_run
/// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
/// use vmcell::{Command, service::{Probe, ServiceSpec}};
///
/// let spec = ServiceSpec::new(Command::new("my-server")).ready(Probe::tcp(8080));
/// let web = vm.services().start("web", spec).await?;
/// web.ready().await?;
/// // Later, perhaps in another program:
/// let web = vm.services().get("web").await?;
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

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The ports that this program has
    /// [published](super::ServiceSpec::publish) for it.
    pub fn ports(&self) -> Vec<PublishedPort> {
        ports_of(&self.vm, &self.name)
    }

    /// Waits until it is ready, or runs if it has no probe.
    ///
    /// The guest keeps the time that its [`Readiness`](super::Readiness) gives
    /// it. A guest that is not to be trusted with that may never answer: put a
    /// timeout around it.
    ///
    /// # Errors
    /// [`ServiceError::Failed`] with its last log lines as soon as it is over,
    /// whether it failed or was stopped; [`ServiceError::Unknown`] if there is
    /// no such service any more; [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe: the service goes on.
    pub async fn ready(&self) -> Result<ServiceStatus, Error> {
        let until = Until::Ready;
        let status = self
            .ask(Wire::Wait {
                name: &self.name,
                until,
            })
            .await?;
        match status.phase.is_ready() {
            true => Ok(status),
            false => Err(self.failure(status).await),
        }
    }

    /// Waits until it is over: stopped or failed. A restart does not count.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is no such service any more,
    /// [`Error::Gone`] if the VM ended. That it failed is no error but what the
    /// status says.
    ///
    /// # Cancel safety
    /// Cancel safe: the service goes on.
    pub async fn wait(&self) -> Result<ServiceStatus, Error> {
        let until = Until::Over;
        self.ask(Wire::Wait {
            name: &self.name,
            until,
        })
        .await
    }

    /// How it is.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is no such service any more,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn status(&self) -> Result<ServiceStatus, Error> {
        self.ask(Wire::Look { name: &self.name }).await
    }

    /// Ends it, with the signal and the patience of its spec, and waits until
    /// all its processes are gone. One that is over stays as it is. The ports
    /// that were published for it by this program are free then.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is no such service any more,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It may or may not be ended if the future is dropped.
    pub async fn stop(&self) -> Result<ServiceStatus, Error> {
        let status = self.ask(Wire::Stop { name: &self.name }).await?;
        if status.phase.is_over() {
            self.close_ports().await;
        }
        Ok(status)
    }

    /// Stops it if it is not over, and starts it with the spec that it has.
    /// [`ready`](Self::ready) waits for what comes of it. Ports that were
    /// published for it stay so, but those of one that was over are closed, and
    /// only a new [start](super::Services::start) publishes them again.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is no such service any more,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It may or may not be restarted if the future is dropped.
    pub async fn restart(&self) -> Result<ServiceStatus, Error> {
        self.ask(Wire::Restart { name: &self.name }).await
    }

    /// Forgets a service that is over, its log included.
    ///
    /// # Errors
    /// [`ServiceError::NotOver`] if it still runs, [`ServiceError::Unknown`] if
    /// there is no such service any more, [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// It may or may not be forgotten if the future is dropped.
    pub async fn remove(&self) -> Result<(), Error> {
        let request = Request::Service(Wire::Remove { name: &self.name });
        let mut stream = self.vm.open(&request)?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Done) => Ok(()),
            event => Err(self.refusal(event)),
        }
    }

    /// Its log: what it printed, in all its runs.
    pub fn logs(&self) -> LogsRequest {
        LogsRequest::new(self.vm.clone(), self.name.clone())
    }

    /// They are closed when the service is over, and here without waiting for
    /// word of that.
    pub(super) async fn close_ports(&self) {
        for port in self.ports() {
            port.close().await;
        }
    }

    async fn ask(&self, request: Wire<'_>) -> Result<ServiceStatus, Error> {
        let mut stream = self.vm.open(&Request::Service(request))?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Service(state)) if state.name == self.name => {
                Ok(ServiceStatus::from_guest(*state))
            }
            event => Err(self.refusal(event)),
        }
    }

    async fn failure(&self, status: ServiceStatus) -> Error {
        // Somebody may have removed it meanwhile, and its log with it.
        let log = self.logs().tail(ServiceFailure::MAX_LINES).bytes().await;
        let log = log.unwrap_or_default();
        let cut = log.len().saturating_sub(ServiceFailure::MAX_BYTES);
        let log = printable(log.get(cut..).unwrap_or_default()).into_owned();
        ServiceError::Failed(Box::new(ServiceFailure { status, log })).into()
    }

    fn refusal(&self, event: StreamEvent) -> Error {
        match event {
            StreamEvent::Closed(Closing::Failed(failed)) => {
                ServiceError::of_other(failed, &self.name).into()
            }
            _ => Error::unexpected_reply(),
        }
    }
}
