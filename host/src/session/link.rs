//! The way to an agent, and how a conversation on it begins.

use std::{sync::Arc, time::Duration};

use rustix::net::{Shutdown, shutdown};
use tokio::{net::UnixStream, time::timeout};
use vmcell_wire::{Hello, encode, reset::ResetKey};

use super::{Address, BUILD, LinkError, PeerInfo, WINDOW, reader::Reader, writer};
use crate::random::random_bytes;

/// A byte stream to an agent.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Arc<UnixStream>,
    medium: Medium,
}

#[derive(Debug)]
enum Medium {
    /// A serial port. It outlives conversations, so a new one can begin on it
    /// at any time, with a reset.
    Port { key: ResetKey, used: bool },
    /// A connection, which is a conversation.
    Socket,
    /// The same, and another one can be made.
    Dialled(Address),
}

/// How long the other end may take to let go of a connection.
const PARTING: Duration = Duration::from_secs(1);

impl Link {
    pub(crate) fn port(socket: UnixStream, key: ResetKey) -> Self {
        Self {
            socket: Arc::new(socket),
            medium: Medium::Port { key, used: false },
        }
    }

    /// A serial port on which a conversation was begun before, so that the next
    /// one begins with a reset.
    pub(super) fn used_port(socket: UnixStream, key: ResetKey) -> Self {
        Self {
            socket: Arc::new(socket),
            medium: Medium::Port { key, used: true },
        }
    }

    pub(crate) fn socket(socket: UnixStream) -> Self {
        Self {
            socket: Arc::new(socket),
            medium: Medium::Socket,
        }
    }

    /// Connects to an agent.
    ///
    /// Cancel safe.
    pub(crate) async fn dial(address: Address) -> Result<Self, LinkError> {
        let socket = address.connect().await?;
        Ok(Self {
            socket: Arc::new(socket),
            medium: Medium::Dialled(address),
        })
    }

    /// Whether another conversation can follow one that has ended so.
    pub(super) fn can_begin_anew(&self, lost: LinkError) -> bool {
        match self.medium {
            // The end of a port is the end of its VMM.
            Medium::Port { .. } => matches!(lost, LinkError::Dropped | LinkError::Io(_)),
            Medium::Dialled(_) => matches!(
                lost,
                LinkError::Dropped | LinkError::Io(_) | LinkError::Closed
            ),
            Medium::Socket => false,
        }
    }

    /// Makes what the next conversation needs, when the one before is over.
    ///
    /// What was said on the old connection must not be heard after what is said
    /// on the new one. So this waits until the agent has hung up, which it does
    /// when it has heard all of it.
    pub(super) async fn renew(&mut self) -> Result<(), LinkError> {
        let Medium::Dialled(address) = &self.medium else {
            return Ok(());
        };
        // It fails if there is no connection any more.
        let _ = shutdown(&*self.socket, Shutdown::Write);
        let mut reader = Reader::new(self.socket.clone());
        let _ = timeout(PARTING, reader.skip_to_end()).await;
        self.socket = Arc::new(address.connect().await?);
        Ok(())
    }

    pub(super) fn stream(&self) -> Arc<UnixStream> {
        self.socket.clone()
    }

    /// Begins a conversation: says hello and waits for the agent's answer.
    pub(super) async fn greet(
        &mut self,
        boot_id: [u8; 16],
    ) -> Result<(Reader, PeerInfo), LinkError> {
        let mut greeting = Vec::new();
        let mut nonce = None;
        if let Medium::Port { key, used } = &mut self.medium
            && std::mem::replace(used, true)
        {
            let random = random_bytes().map_err(|_| LinkError::Closed)?;
            let fresh = ResetKey::new(random).to_bytes();
            greeting.extend_from_slice(&key.reset(fresh));
            nonce = Some(fresh);
        }
        encode::hello(&mut greeting, &Hello::new(BUILD, WINDOW, boot_id))?;
        let mut reader = Reader::new(self.socket.clone());
        // At once: the agent may have to write before it can read.
        let ((), peer) = tokio::try_join!(writer::write(&self.socket, &greeting), async {
            if let Some(nonce) = nonce {
                reader.skip_past(nonce).await?;
            }
            reader.hello().await
        })?;
        Ok((reader, peer))
    }
}
