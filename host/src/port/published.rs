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
/// It stays so until it is [closed](Self::close), or the VM ends, or the last
/// handle of the VM in this program is dropped. Dropping this one changes
/// nothing.
#[derive(Clone, Debug)]
pub struct PublishedPort(Arc<Published>);

#[derive(Debug)]
struct Published {
    address: SocketAddr,
    guest: u16,
    service: Option<String>,
    stage: watch::Sender<Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Closing,
    Closed,
}

impl PublishedPort {
    /// Where clients connect to: a port of 127.0.0.1.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The port of this machine.
    pub fn host_port(&self) -> u16 {
        self.0.address.port()
    }

    /// The port of the guest.
    pub fn guest_port(&self) -> u16 {
        self.0.guest
    }

    /// The service that it is published for, and with which it is closed: see
    /// [`ServiceSpec::publish`](crate::service::ServiceSpec::publish).
    pub fn service(&self) -> Option<&str> {
        self.0.service.as_deref()
    }

    /// Publishes it no longer: all its connections break, and the port of this
    /// machine is free when this returns. Closing it again does nothing.
    ///
    /// # Cancel safety
    /// It is closed even if the future is dropped, once that was polled.
    pub async fn close(&self) {
        self.0.begin_to_close();
        self.closed().await;
    }

    /// Waits until it is not published any more, for whatever reason.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn closed(&self) {
        let mut stage = self.0.stage.subscribe();
        // The sender is here, so this does not fail.
        let _ = stage.wait_for(|stage| *stage == Stage::Closed).await;
    }
}

impl Published {
    fn begin_to_close(&self) {
        self.stage.send_if_modified(|stage| {
            let open = *stage == Stage::Open;
            if open {
                *stage = Stage::Closing;
            }
            open
        });
    }

    fn is_open(&self) -> bool {
        *self.stage.borrow() == Stage::Open
    }
}

/// What the task of a published port leaves behind, in whatever way it ends.
struct ClosedOnDrop(Arc<Published>);

impl Drop for ClosedOnDrop {
    fn drop(&mut self) {
        self.0.stage.send_replace(Stage::Closed);
    }
}

/// The ports of a VM that this program has published. They are closed when this
/// is dropped.
pub(crate) struct PublishedPorts {
    ports: Mutex<Vec<Arc<Published>>>,
    permits: Arc<Semaphore>,
}

/// How many connections all published ports have at once. A link has room for
/// 512 streams, and commands and files need some.
const MAX_CONNECTIONS: usize = 384;

impl PublishedPorts {
    /// Publishes a port until `until` is ready, if nothing else closes it.
    pub(super) async fn publish(
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
            stage: watch::Sender::new(Stage::Open),
        });
        let mut stage = published.stage.subscribe();
        let closed = ClosedOnDrop(published.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = listener.run(session) => {}
                _ = stage.wait_for(|stage| *stage != Stage::Open) => {}
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

    /// Those that are open.
    pub(super) fn list(&self) -> Vec<PublishedPort> {
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
            port.begin_to_close();
        }
    }
}
