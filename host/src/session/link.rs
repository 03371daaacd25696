//! The way to an agent, and how a conversation on it begins.

use std::sync::Arc;

use tokio::net::UnixStream;
use vmcell_wire::{Hello, encode, reset::ResetKey};

use super::{BUILD, Lost, PeerInfo, WINDOW, reader::Reader, writer};
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
}

impl Link {
    pub(crate) fn port(socket: UnixStream, key: ResetKey) -> Self {
        Self {
            socket: Arc::new(socket),
            medium: Medium::Port { key, used: false },
        }
    }

    pub(crate) fn socket(socket: UnixStream) -> Self {
        Self {
            socket: Arc::new(socket),
            medium: Medium::Socket,
        }
    }

    /// Whether another conversation can follow one that has ended so.
    pub(super) fn can_begin_anew(&self, lost: Lost) -> bool {
        matches!(self.medium, Medium::Port { .. }) && matches!(lost, Lost::Dropped | Lost::Io(_))
    }

    pub(super) fn stream(&self) -> Arc<UnixStream> {
        self.socket.clone()
    }

    /// Begins a conversation: says hello and waits for the agent's answer.
    pub(super) async fn greet(&mut self, boot_id: [u8; 16]) -> Result<(Reader, PeerInfo), Lost> {
        let mut greeting = Vec::new();
        let mut nonce = None;
        if let Medium::Port { key, used } = &mut self.medium
            && std::mem::replace(used, true)
        {
            let random = random_bytes().map_err(|_| Lost::Closed)?;
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
