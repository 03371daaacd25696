//! What a client requests of the owner of a VM for its services: their ports, which must
//! stay open when the client ends, and how many there are.
//!
//! ```text
//!  client  ServicesRequest
//!  owner   Publish: Result<(), PublishRefusal>
//!  client    a byte when the service runs; without it, the ports are closed
//!  owner   Close: () when they are closed
//!  owner   Ports: all ports of services
//!  owner   Count: Result<how many, and how many of them run, why not>
//! ```

use std::{io, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use super::{
    ServiceCounts,
    list::list,
    published::{ServicePort, ServicePorts},
};
use crate::{
    error::Error,
    framed,
    port::{PortError, PortMapping, PublishedPorts},
    session::Session,
};

/// What a client wants.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ServicesRequest {
    /// Publish ports for a service that is about to be started: those of this machine, or
    /// any free ones, and those of the guest.
    Publish {
        service: String,
        ports: Vec<(Option<u16>, u16)>,
    },
    /// Close the ports of a service.
    Close { service: String },
    /// Tell all ports of services.
    Ports,
    /// Tell how many services there are.
    Count,
}

/// How long a guest may take to count its services.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// Why ports are not published.
#[derive(Debug, Serialize, Deserialize)]
enum PublishRefusal {
    NotAllowed,
    HostPortTaken(u16),
    HostPortDenied(u16),
    Other(String),
}

impl PublishRefusal {
    fn of(error: Error) -> Self {
        match error {
            Error::Port(PortError::HostPortTaken { port }) => Self::HostPortTaken(port),
            Error::Port(PortError::HostPortDenied { port }) => Self::HostPortDenied(port),
            other => Self::Other(other.to_string()),
        }
    }

    fn into_error(self, id: &str) -> Error {
        match self {
            Self::NotAllowed => PortError::NotAllowed.into(),
            Self::HostPortTaken(port) => PortError::HostPortTaken { port }.into(),
            Self::HostPortDenied(port) => PortError::HostPortDenied { port }.into(),
            Self::Other(reason) => Error::OwnerFailed {
                id: id.to_owned(),
                doing: "publish a port",
                reason,
            },
        }
    }
}

/// Ports that the owner has opened for a service that is about to be started. It closes
/// them if this is dropped.
#[derive(Debug)]
pub(crate) struct PortsOfOwner(UnixStream);

impl PortsOfOwner {
    /// Has them published by the owner of the VM `id`, to whom the request was sent.
    pub(crate) async fn receive(mut socket: UnixStream, id: &str) -> Result<Self, Error> {
        let reply: io::Result<Result<(), PublishRefusal>> = framed::receive(&mut socket).await;
        match reply {
            Ok(Ok(())) => Ok(Self(socket)),
            Ok(Err(refusal)) => Err(refusal.into_error(id)),
            // An owner of an older version does not know the request.
            Err(_) => Err(Error::OwnerVersion { id: id.to_owned() }),
        }
    }

    /// Keeps them open until the service finishes.
    pub(super) async fn close_when_finished(mut self) -> io::Result<()> {
        self.0.write_u8(1).await
    }
}

/// Receives a request and answers it.
pub(crate) async fn serve(
    socket: &mut UnixStream,
    session: &Arc<Session>,
    published: &PublishedPorts,
    allows_ports: bool,
) -> io::Result<()> {
    match framed::receive(socket).await? {
        ServicesRequest::Publish { service, ports } => {
            let ports: Vec<PortMapping> = ports.into_iter().map(mapping).collect();
            let opened = match allows_ports {
                true => ServicePorts::publish(published, session, &service, &ports)
                    .await
                    .map_err(PublishRefusal::of),
                false => Err(PublishRefusal::NotAllowed),
            };
            framed::send(socket, &opened.as_ref().map(|_| ())).await?;
            if let Ok(opened) = opened {
                // Fails if the client could not start the service, or has died.
                socket.read_u8().await?;
                opened.close_when_finished(session.clone(), service);
            }
            Ok(())
        }
        ServicesRequest::Close { service } => {
            ServicePort::close(published, &service).await;
            framed::send(socket, &()).await
        }
        ServicesRequest::Ports => framed::send(socket, &ServicePort::list(published)).await,
        ServicesRequest::Count => {
            // Somebody who only looks does not use the VM.
            let listing = session.unnoticed(timeout(COUNT_TIMEOUT, list(session)));
            let reply = match listing.await {
                Ok(Ok(list)) => {
                    let counts = ServiceCounts::of(&list);
                    Ok((counts.total, counts.running))
                }
                Ok(Err(error)) => Err(format!("{error:?}")),
                Err(_) => Err("the guest does not answer".to_owned()),
            };
            framed::send(socket, &reply).await
        }
    }
}

fn mapping((host, guest): (Option<u16>, u16)) -> PortMapping {
    PortMapping { host, guest }
}
