use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::sleep,
};

use super::{
    PortError, PortMapping,
    dial::{DialError, dial},
    relay::{relay, reset_on_close},
};
use crate::{error::Error, session::Session};

/// A listening port of this machine that forwards to a port of a guest.
pub(super) struct Listener {
    socket: TcpListener,
    guest: u16,
    /// Shared by all published ports of a VM handle.
    permits: Arc<Semaphore>,
}

/// The most connections that a published port has at once. Further ones wait to
/// be accepted.
const MAX_CONNECTIONS: usize = 256;

/// How long a program of the guest may take to accept a connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait after `accept` failed, for example for lack of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

impl Drop for Listener {
    fn drop(&mut self) {
        // A program that is being started has a copy of the socket until its execve, and
        // would keep the port open. It fails only if nobody listens any more.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Read);
    }
}

impl Listener {
    /// Listens on the loopback of this machine only.
    pub(super) async fn bind(mapping: PortMapping, permits: Arc<Semaphore>) -> Result<Self, Error> {
        let port = mapping.host.unwrap_or(0);
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let socket = bound.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => PortError::HostPortTaken { port }.into(),
            io::ErrorKind::PermissionDenied => PortError::HostPortDenied { port }.into(),
            _ => Error::Host {
                doing: "listen on a port",
                source,
            },
        })?;
        Ok(Self {
            socket,
            guest: mapping.guest,
            permits,
        })
    }

    pub(super) fn address(&self) -> Result<SocketAddr, Error> {
        let address = self.socket.local_addr();
        address.map_err(Error::host("listen on a port"))
    }

    /// Serves clients until the link to the guest is lost. When this is
    /// dropped, all connections are reset.
    pub(super) async fn run(self, session: Arc<Session>) {
        let mut clients = JoinSet::new();
        let lost = async {
            // The guard that this returns must be dropped before anybody waits
            // again.
            let _ = session.link_error().wait_for(Option::is_some).await;
        };
        tokio::pin!(lost);
        let own_permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = async {
                // Neither is ever closed.
                let own = own_permits.clone().acquire_owned().await.ok()?;
                let shared = self.permits.clone().acquire_owned().await.ok()?;
                Some((self.socket.accept().await, own, shared))
            };
            tokio::select! {
                Some((accepted, own, shared)) = accepted => match accepted {
                    Ok((client, _)) => {
                        // Set here, because the task may be dropped before its
                        // first poll.
                        if reset_on_close(&client).is_err() {
                            continue;
                        }
                        let (session, guest) = (session.clone(), self.guest);
                        clients.spawn(async move {
                            serve(client, &session, guest).await;
                            drop((own, shared));
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no connection can be accepted");
                        sleep(ACCEPT_RETRY_DELAY).await;
                    }
                },
                Some(_) = clients.join_next() => {}
                () = &mut lost => return,
            }
        }
    }
}

/// Serves one client. Its socket is reset unless both sides closed their
/// direction.
async fn serve(mut client: TcpStream, session: &Session, guest: u16) {
    let dialling = dial(session, guest);
    match session.pauses().timeout(DIAL_TIMEOUT, dialling).await {
        Some(Ok(connection)) => {
            if let Err(error) = relay(&mut client, connection, &()).await {
                tracing::debug!(port = guest, %error, "a connection broke");
            }
        }
        Some(Err(DialError::Port(error))) => {
            tracing::warn!(port = guest, %error, "a client was refused");
        }
        Some(Err(error)) => tracing::warn!(port = guest, ?error, "a client was refused"),
        None => tracing::warn!(port = guest, "no program accepts the connection"),
    }
}
