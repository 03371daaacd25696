use std::{collections::VecDeque, io};

use serde::{Deserialize, Serialize};
use tokio::{
    io::AsyncWrite,
    net::UnixStream,
    sync::broadcast::{Receiver, error::RecvError},
};

use super::{ConnectionEnd, Decision};
use crate::framed::{receive, send};

/// What happens on the network of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkEvent {
    /// Something was decided.
    Decided(Decision),
    /// A connection has ended.
    Ended(ConnectionEnd),
}

/// What has happened on the network of a VM, the last 1000 events, and what happens from
/// then on. Returned by [`Vm::network_log`](crate::Vm::network_log).
#[derive(Debug)]
pub struct NetworkLog {
    recent: VecDeque<NetworkEvent>,
    later: Later,
}

#[derive(Debug)]
enum Later {
    Own(Receiver<NetworkEvent>),
    /// Of a VM that another program owns.
    Attached(UnixStream),
}

impl NetworkLog {
    pub(super) fn own((recent, later): (Vec<NetworkEvent>, Receiver<NetworkEvent>)) -> Self {
        Self {
            recent: recent.into(),
            later: Later::Own(later),
        }
    }

    /// Receives the log of a VM that another program owns.
    pub(crate) async fn receive(mut socket: UnixStream) -> io::Result<Self> {
        let recent: Vec<NetworkEvent> = receive(&mut socket).await?;
        Ok(Self {
            recent: recent.into(),
            later: Later::Attached(socket),
        })
    }

    /// Sends the log to another program, until that is gone or the VM has ended.
    pub(crate) async fn send(mut self, socket: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let recent: Vec<_> = self.recent.drain(..).collect();
        send(socket, &recent).await?;
        while let Some(event) = self.next().await {
            send(socket, &event).await?;
        }
        Ok(())
    }

    /// Returns what has happened, the oldest first. What [`next`](Self::next) has returned
    /// is not in it.
    pub fn take_recent(&mut self) -> Vec<NetworkEvent> {
        self.recent.drain(..).collect()
    }

    /// Waits for the next event. Returns `None` when the VM has ended. Who is more than
    /// 1000 events behind misses the oldest ones.
    ///
    /// # Cancel safety
    /// Not cancel safe: drop the log if this is dropped.
    pub async fn next(&mut self) -> Option<NetworkEvent> {
        if let Some(event) = self.recent.pop_front() {
            return Some(event);
        }
        match &mut self.later {
            Later::Own(later) => loop {
                match later.recv().await {
                    Ok(event) => return Some(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            },
            Later::Attached(socket) => receive(socket).await.ok(),
        }
    }
}
