//! Ports that are published until a service finishes.

use std::sync::Arc;

use tokio::sync::watch;
use vmcell_wire::{
    Outcome, Request,
    service::{ServiceRequest, WaitFor},
};

use crate::{
    error::Error,
    port::{PortMapping, PublishedPort},
    session::{Session, StreamEvent},
    vm::Vm,
};

/// The published ports of a service. They are closed when this is dropped.
#[derive(Debug)]
pub(super) struct ServicePorts {
    ports: Vec<PublishedPort>,
    open: watch::Sender<()>,
}

impl ServicePorts {
    /// Publishes them. Called before the service is started, so that a port
    /// that is in use is detected before anything has happened.
    pub(super) async fn publish(
        vm: &Vm,
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
            match vm.ports().publish_until(*mapping, service, until).await {
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
    pub(super) fn close_when_finished(self, vm: &Vm, service: &str) {
        let Self { ports, open } = self;
        if !ports.is_empty() {
            // The waiting task must not keep the VM alive.
            let session = vm.shared_session();
            let service = service.to_owned();
            tokio::spawn(async move {
                finished(&session, &service).await;
                drop(open);
            });
        }
    }
}

/// Returns the ports that this program has published for a service.
pub(super) fn ports_of(vm: &Vm, service: &str) -> Vec<PublishedPort> {
    let mut ports = vm.ports().list();
    ports.retain(|port| port.service() == Some(service));
    ports
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
