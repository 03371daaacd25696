//! Ports of services. The owner of the VM publishes them, so that they stay open when a
//! client ends that has started a service.

use std::{io, path::Path, time::Duration};

use serde::Deserialize;
use tokio::time::timeout;

use super::{
    Vm,
    attached::{connect_if, connect_to_owner},
    handle::Control,
};
use crate::{
    attach::{AttachClient, VmName},
    error::Error,
    framed,
    port::{PortError, PortMapping},
    service::{NewPorts, PortsOfOwner, ServiceCounts, ServicePort, ServicePorts, ServicesRequest},
};

impl Vm {
    /// Publishes ports for a service that is about to be started.
    pub(crate) async fn publish_for(
        &self,
        service: &str,
        ports: &[PortMapping],
    ) -> Result<NewPorts, Error> {
        self.check_running()?;
        for port in ports {
            port.check()?;
        }
        match &self.shared.control {
            Control::Owner { .. } => {
                if !self.network()?.status().published_ports {
                    return Err(PortError::NotAllowed.into());
                }
                let (published, session) = (self.published_ports(), self.shared_session());
                let ports = ServicePorts::publish(published, &session, service, ports).await?;
                Ok(NewPorts::Ours(ports))
            }
            Control::Attached(name) => {
                let request = ServicesRequest::Publish {
                    service: service.to_owned(),
                    ports: ports.iter().map(|port| (port.host, port.guest)).collect(),
                };
                let client = connect_to_owner(name).await?;
                let socket = client.services(&request).await;
                let socket = socket.map_err(Error::host("ask the program that owns the VM"))?;
                let ports = PortsOfOwner::receive(socket, name.id()).await?;
                Ok(NewPorts::Owners(ports))
            }
        }
    }

    /// Returns the published ports of services.
    pub(crate) async fn service_ports(&self) -> Vec<ServicePort> {
        match &self.shared.control {
            Control::Owner { .. } => ServicePort::list(self.published_ports()),
            // An owner of an older version has none.
            Control::Attached(name) => {
                let ports = ask(connect_to_owner(name), &ServicesRequest::Ports).await;
                ports.unwrap_or_default()
            }
        }
    }

    /// Closes the published ports of a service.
    pub(crate) async fn close_ports_of(&self, service: &str) {
        match &self.shared.control {
            Control::Owner { .. } => ServicePort::close(self.published_ports(), service).await,
            Control::Attached(name) => {
                let service = service.to_owned();
                // Otherwise they are closed when the guest reports that it has finished.
                let request = ServicesRequest::Close { service };
                let _: io::Result<()> = ask(connect_to_owner(name), &request).await;
            }
        }
    }
}

/// How long an owner and its guest may take to count the services.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns how many services the VM `id` of another program has. `None` if that program or
/// its guest does not answer, or if the path that the VM was started from is not the one
/// that is meant.
pub(crate) async fn count_services(
    id: &str,
    is_meant: impl FnOnce(&Path) -> bool,
) -> Option<ServiceCounts> {
    let name = VmName::new(id)?;
    let counting = ask::<Result<_, String>>(connect_if(&name, is_meant), &ServicesRequest::Count);
    let (total, running) = timeout(COUNT_TIMEOUT, counting).await.ok()?.ok()?.ok()?;
    Some(ServiceCounts { total, running })
}

async fn ask<T: for<'a> Deserialize<'a>>(
    connecting: impl Future<Output = Result<AttachClient, Error>>,
    request: &ServicesRequest,
) -> io::Result<T> {
    let client = connecting.await.map_err(io::Error::other)?;
    let mut socket = client.services(request).await?;
    framed::receive(&mut socket).await
}
