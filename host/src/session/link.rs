//! The byte stream to an agent, and the exchange of hellos that begins it.

use std::{sync::Arc, time::Duration};

use rustix::net::{Shutdown, shutdown};
use tokio::{net::UnixStream, time::timeout};
use vmcell_wire::{Hello, Renew, Request, StreamId, encode, reset::ResetKey};

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
    /// A serial port. It stays open; a reset restarts the protocol at any time.
    SerialPort { key: ResetKey, used: bool },
    /// A connection that cannot be made again.
    Socket,
    /// A connection that can be made again at this address.
    Redialable(Address),
}

/// How long the agent may take to close an old connection.
const HANGUP_TIMEOUT: Duration = Duration::from_secs(1);

impl Link {
    pub(crate) fn serial(socket: UnixStream, key: ResetKey) -> Self {
        Self {
            socket: Arc::new(socket),
            transport: Transport::SerialPort { key, used: false },
        }
    }

    /// Creates a link on a serial port that was used before, so that it begins
    /// with a reset.
    pub(crate) fn used_serial(socket: UnixStream, key: ResetKey) -> Self {
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

    /// Returns whether the link can be made again after this error.
    pub(super) fn can_reconnect_after(&self, error: LinkError) -> bool {
        match self.transport {
            // A serial port closes only when its VMM ends.
            Transport::SerialPort { .. } => matches!(error, LinkError::Dropped | LinkError::Io(_)),
            Transport::Redialable(_) => matches!(
                error,
                LinkError::Dropped | LinkError::Io(_) | LinkError::Closed
            ),
            Transport::Socket => false,
        }
    }

    /// Connects again, if the link is a connection.
    ///
    /// The agent must not read bytes of the old connection after bytes of the
    /// new one. So this waits until the agent has closed the old one, which it
    /// does after reading all of it, for [`HANGUP_TIMEOUT`] at most.
    pub(super) async fn reconnect(&mut self) -> Result<(), LinkError> {
        let Transport::Redialable(address) = &self.transport else {
            return Ok(());
        };
        // Fails if the connection is closed already.
        let _ = shutdown(&*self.socket, Shutdown::Write);
        let mut reader = Reader::new(self.socket.clone());
        let _ = timeout(HANGUP_TIMEOUT, reader.skip_to_end()).await;
        self.socket = Arc::new(address.connect().await?);
        Ok(())
    }

    /// Returns whether it is a connection that can be made again.
    pub(super) fn is_dialled(&self) -> bool {
        matches!(self.transport, Transport::Redialable(_))
    }

    pub(super) fn stream(&self) -> Arc<UnixStream> {
        self.socket.clone()
    }

    /// Sends a hello, after a reset if one is needed, and waits for the agent's.
    pub(super) async fn exchange_hellos(
        &mut self,
        boot_id: [u8; 16],
    ) -> Result<(Reader, PeerInfo), LinkError> {
        self.exchange_hellos_and_send(boot_id, &[]).await
    }

    /// Same, and sends these frames at once.
    async fn exchange_hellos_and_send(
        &mut self,
        boot_id: [u8; 16],
        frames: &[u8],
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
        hello.extend_from_slice(frames);
        let mut reader = Reader::new(self.socket.clone());
        // Concurrently: the agent may have to write before it can read.
        let ((), peer) = tokio::try_join!(writer::write(&self.socket, &hello), async {
            if let Some(nonce) = nonce {
                reader.skip_past(nonce).await?;
            }
            reader.hello().await
        })?;
        Ok((reader, peer))
    }

    /// Exchanges hellos with an agent that has this boot id, and gives it a new identity,
    /// with which it can be reached from then on.
    pub(super) async fn renew(
        &mut self,
        boot_id: [u8; 16],
        renew: &Renew<'_>,
    ) -> Result<(Reader, PeerInfo), LinkError> {
        // The first stream of the session; its id is free again afterwards.
        let stream = StreamId::MAX.next();
        let mut request = Vec::new();
        encode::open(&mut request, stream, &Request::Renew(*renew))?;
        // Together, because a guest that was just restored takes long to wake up.
        let hellos = self.exchange_hellos_and_send(boot_id, &request);
        let (mut reader, mut peer) = hellos.await?;
        if peer.boot_id != boot_id {
            return Err(LinkError::WrongBoot);
        }
        if !reader.is_done(stream).await? {
            return Err(LinkError::NotRenewed);
        }
        let mut ack = Vec::new();
        encode::ack(&mut ack, stream);
        writer::write(&self.socket, &ack).await?;
        if let Transport::SerialPort { key, .. } = &mut self.transport {
            *key = ResetKey::new(renew.reset_key);
        }
        peer.boot_id = renew.boot_id;
        Ok((reader, peer))
    }
}
