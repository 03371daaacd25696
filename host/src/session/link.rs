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
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    /// A serial port. It outlives conversations, so a new one can begin on it
    /// at any time, with a reset.
    SerialPort { key: ResetKey, used: bool },
    /// A connection, which is a conversation.
    Socket,
    /// The same, and another one can be made.
    Redialable(Address),
}

/// How long the other end may take to let go of a connection.
const HANGUP_TIMEOUT: Duration = Duration::from_secs(1);

impl Link {
    pub(crate) fn serial(socket: UnixStream, key: ResetKey) -> Self {
        Self {
            socket: Arc::new(socket),
            transport: Transport::SerialPort { key, used: false },
        }
    }

    /// A serial port on which a conversation was begun before, so that the next
    /// one begins with a reset.
    pub(super) fn used_serial(socket: UnixStream, key: ResetKey) -> Self {
        Self {
            socket: Arc::new(socket),
            transport: Transport::SerialPort { key, used: true },
        }
    }

    pub(crate) fn socket(socket: UnixStream) -> Self {
        Self {
            socket: Arc::new(socket),
            transport: Transport::Socket,
        }
    }

    /// Connects to an agent.
    ///
    /// Cancel safe.
    pub(crate) async fn dial(address: Address) -> Result<Self, LinkError> {
        let socket = address.connect().await?;
        Ok(Self {
            socket: Arc::new(socket),
            transport: Transport::Redialable(address),
        })
    }

    /// Whether another conversation can follow one that has ended so.
    pub(super) fn can_reconnect_after(&self, error: LinkError) -> bool {
        match self.transport {
            // The end of a port is the end of its VMM.
            Transport::SerialPort { .. } => matches!(error, LinkError::Dropped | LinkError::Io(_)),
            Transport::Redialable(_) => matches!(
                error,
                LinkError::Dropped | LinkError::Io(_) | LinkError::Closed
            ),
            Transport::Socket => false,
        }
    }

    /// Makes what the next conversation needs, when the one before is over.
    ///
    /// What was said on the old connection must not be heard after what is said
    /// on the new one. So this waits until the agent has hung up, which it does
    /// when it has heard all of it.
    pub(super) async fn reconnect(&mut self) -> Result<(), LinkError> {
        let Transport::Redialable(address) = &self.transport else {
            return Ok(());
        };
        // It fails if there is no connection any more.
        let _ = shutdown(&*self.socket, Shutdown::Write);
        let mut reader = Reader::new(self.socket.clone());
        let _ = timeout(HANGUP_TIMEOUT, reader.skip_to_end()).await;
        self.socket = Arc::new(address.connect().await?);
        Ok(())
    }

    pub(super) fn stream(&self) -> Arc<UnixStream> {
        self.socket.clone()
    }

    /// Begins a conversation: says hello and waits for the agent's answer.
    pub(super) async fn exchange_hellos(
        &mut self,
        boot_id: [u8; 16],
    ) -> Result<(Reader, PeerInfo), LinkError> {
        let mut hello = Vec::new();
        let mut nonce = None;
        if let Transport::SerialPort { key, used } = &mut self.transport
            && std::mem::replace(used, true)
        {
            let random = random_bytes().map_err(|_| LinkError::Closed)?;
            let fresh = ResetKey::new(random).to_bytes();
            hello.extend_from_slice(&key.reset(fresh));
            nonce = Some(fresh);
        }
        encode::hello(&mut hello, &Hello::new(BUILD, WINDOW, boot_id))?;
        let mut reader = Reader::new(self.socket.clone());
        // At once: the agent may have to write before it can read.
        let ((), peer) = tokio::try_join!(writer::write(&self.socket, &hello), async {
            if let Some(nonce) = nonce {
                reader.skip_past(nonce).await?;
            }
            reader.hello().await
        })?;
        Ok((reader, peer))
    }
}
