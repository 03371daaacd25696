//! Ports that are published until a service finishes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use vmcell_wire::{
    Outcome, Request,
    service::{ServiceRequest, WaitFor},
};

use crate::{
    error::Error,
    port::{PortMapping, PublishedPort, PublishedPorts},
    session::{Session, StreamEvent},
};

/// A published port of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServicePort {
    pub(crate) service: String,
    pub(crate) host: u16,
    pub(crate) guest: u16,
}

impl ServicePort {
    /// Returns those that are open.
    pub(crate) fn list(published: &PublishedPorts) -> Vec<Self> {
        let ports = published.list().into_iter();
        let of_services = ports.filter_map(|port| {
            Some(Self {
                service: port.service()?.to_owned(),
                host: port.host_port(),
                guest: port.guest_port(),
            })
        });
        of_services.collect()
    }

    /// Closes those of a service.
    pub(crate) async fn close(published: &PublishedPorts, service: &str) {
        for port in published.list() {
            if port.service() == Some(service) {
                port.close().await;
            }
        }
    }

    pub(crate) fn mapping(&self) -> PortMapping {
        (self.host, self.guest).into()
    }
}

/// The published ports of a service. They are closed when this is dropped.
#[derive(Debug)]
pub(crate) struct ServicePorts {
    ports: Vec<PublishedPort>,
    open: watch::Sender<()>,
}

impl ServicePorts {
    /// Publishes them. Called before the service is started, so that a port
    /// that is in use is detected before anything has happened.
    pub(crate) async fn publish(
        published: &PublishedPorts,
        session: &Arc<Session>,
        service: &str,
        mappings: &[PortMapping],
    ) -> Result<Self, Error> {
        let mut this = Self {
            ports: Vec::new(),
            open: watch::Sender::new(()),
        };
        for mapping in mappings {
            let mut open = this.open.subscribe();
            let until = async move {
                // Nothing is ever sent: this returns when the sender is
                // dropped.
                let _ = open.changed().await;
            };
            let service = Some(service.to_owned());
            let session = session.clone();
            match published.publish(*mapping, service, session, until).await {
                Ok(port) => this.ports.push(port),
                Err(error) => {
                    this.close().await;
                    return Err(error);
                }
            }
        }
        Ok(this)
    }

    /// Closes them, and returns when the ports of this machine are free again.
    pub(super) async fn close(self) {
        for port in &self.ports {
            port.close().await;
        }
    }

    /// Keeps them open until the service finishes.
    pub(crate) fn close_when_finished(self, session: Arc<Session>, service: String) {
        let Self { ports, open } = self;
        if !ports.is_empty() {
            // The waiting task must not keep the VM alive.
            tokio::spawn(async move {
                finished(&session, &service).await;
                drop(open);
            });
        }
    }
}

/// Waits until a service finishes or the link is lost.
async fn finished(session: &Arc<Session>, name: &str) {
    let until = WaitFor::Ended;
    let request = Request::Service(ServiceRequest::Wait { name, until });
    let Ok(mut stream) = session.open(&request) else {
        return;
    };
    match stream.next().await {
        Ok(StreamEvent::Closed(closing)) if matches!(closing.outcome(), Outcome::Service(_)) => {}
        other => tracing::debug!(service = name, ?other, "the guest reported no end"),
    }
}
