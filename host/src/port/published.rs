use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Semaphore, watch};

use super::{PortMapping, listener::Listener};
use crate::{error::Error, session::Session};

/// A port of the guest that is published on this machine.
///
/// It stays open until it is [closed](Self::close), the VM ends, or the last
/// handle of the VM in this program is dropped. Dropping this handle does not
/// close it.
#[derive(Clone, Debug)]
pub struct PublishedPort(Arc<Published>);

#[derive(Debug)]
struct Published {
    address: SocketAddr,
    guest: u16,
    service: Option<String>,
    state: watch::Sender<PortState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortState {
    Open,
    Closing,
    Closed,
}

impl PublishedPort {
    /// Returns the address for clients: a port of 127.0.0.1.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Returns the port of this machine.
    pub fn host_port(&self) -> u16 {
        self.0.address.port()
    }

    /// Returns the port of the guest.
    pub fn guest_port(&self) -> u16 {
        self.0.guest
    }

    /// Returns the service that it is published for, and with which it is
    /// closed: see
    /// [`ServiceSpec::publish`](crate::service::ServiceSpec::publish).
    pub fn service(&self) -> Option<&str> {
        self.0.service.as_deref()
    }

    /// Closes it: all its connections are reset, and the port of this machine
    /// is free when this returns. Closing it again does nothing.
    ///
    /// # Cancel safety
    /// It is closed even if the future is dropped, once it was polled.
    pub async fn close(&self) {
        self.0.start_closing();
        self.closed().await;
    }

    /// Waits until it is closed, for whatever reason.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn closed(&self) {
        let mut state = self.0.state.subscribe();
        // The sender is alive, so this does not fail.
        let _ = state.wait_for(|state| *state == PortState::Closed).await;
    }
}

impl Published {
    fn start_closing(&self) {
        self.state.send_if_modified(|state| {
            let open = *state == PortState::Open;
            if open {
                *state = PortState::Closing;
            }
            open
        });
    }

    fn is_open(&self) -> bool {
        *self.state.borrow() == PortState::Open
    }
}

/// Marks a published port as closed when its task ends, even by a panic.
struct ClosedOnDrop(Arc<Published>);

impl Drop for ClosedOnDrop {
    fn drop(&mut self) {
        self.0.state.send_replace(PortState::Closed);
    }
}

/// The ports of a VM that this program has published, also for clients. They are closed when this
/// is dropped.
pub(crate) struct PublishedPorts {
    ports: Mutex<Vec<Arc<Published>>>,
    permits: Arc<Semaphore>,
}

/// The most connections that all published ports have at once. A link has room
/// for 512 streams, and commands and files need some.
const MAX_CONNECTIONS: usize = 384;

impl PublishedPorts {
    /// Publishes a port until `until` completes, if nothing closes it before.
    pub(crate) async fn publish(
        &self,
        mapping: PortMapping,
        service: Option<String>,
        session: Arc<Session>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<PublishedPort, Error> {
        let mapping = mapping.check()?;
        let listener = Listener::bind(mapping, self.permits.clone()).await?;
        let published = Arc::new(Published {
            address: listener.address()?,
            guest: mapping.guest,
            service,
            state: watch::Sender::new(PortState::Open),
        });
        let mut state = published.state.subscribe();
        let closed = ClosedOnDrop(published.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = listener.run(session) => {}
                _ = state.wait_for(|state| *state != PortState::Open) => {}
                () = until => {}
            }
            // Only now: the listener is gone, and the port is free.
            drop(closed);
        });
        let mut ports = self.lock();
        ports.retain(|port| port.is_open());
        ports.push(published.clone());
        Ok(PublishedPort(published))
    }

    /// Returns the open ones.
    pub(crate) fn list(&self) -> Vec<PublishedPort> {
        let ports = self.lock();
        let open = ports.iter().filter(|port| port.is_open());
        open.cloned().map(PublishedPort).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Published>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for PublishedPorts {
    fn default() -> Self {
        Self {
            ports: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }
}

impl Drop for PublishedPorts {
    fn drop(&mut self) {
        for port in self.lock().iter() {
            port.start_closing();
        }
    }
}
