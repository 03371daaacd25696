use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt, net::UnixStream, sync::Semaphore, task::JoinSet, time::timeout};

use super::{
    BaselineSlot, ControlRequest, Name, VmSummary, ending,
    listener::{Connected, Connection, Listener, our_listeners},
};
use crate::vm::VmEnd;

/// The visitor's side: in front of a VM that another program owns.
#[derive(Debug)]
pub(crate) struct Visitor {
    socket: UnixStream,
    pub(crate) summary: VmSummary,
    /// The program that owns the VM.
    pub(crate) owner: Option<u32>,
}

/// A VM of our own user, as far as its owner can be reached.
#[derive(Debug)]
pub(crate) enum Found {
    Answering(Visitor),
    /// The owner accepts no connection, or says nothing.
    NotAnswering {
        owner: Option<u32>,
    },
    /// The owner says something that this version does not understand.
    OtherVersion {
        owner: Option<u32>,
    },
}

/// How long an owner may take to say what its VM is.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How many owners are waited for at once: each takes a descriptor.
const MAX_WAITING: usize = 128;

impl Visitor {
    /// Asks what the VM is. None: it ends just now.
    async fn ask(connection: Connection) -> Option<Found> {
        let Connection { mut socket, owner } = connection;
        let summary = match timeout(ANSWER_TIMEOUT, VmSummary::receive(&mut socket)).await {
            Ok(Ok(summary)) => summary,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Some(Found::OtherVersion { owner });
            }
            Ok(Err(_)) => return None,
            Err(_) => return Some(Found::NotAnswering { owner }),
        };
        Some(Found::Answering(Self {
            socket,
            summary,
            owner,
        }))
    }

    /// Goes in. What follows on the socket is the wire protocol.
    pub(crate) async fn attach(mut self) -> io::Result<UnixStream> {
        self.socket
            .write_all(&[ControlRequest::Attach as u8])
            .await?;
        Ok(self.socket)
    }

    /// Asks how the workspace was. Empty: the owner does not know.
    pub(crate) async fn baseline(mut self) -> io::Result<Bytes> {
        self.socket
            .write_all(&[ControlRequest::Baseline as u8])
            .await?;
        BaselineSlot::receive(&mut self.socket).await
    }

    /// Has the owner stop or kill the VM or only watch it, and waits until it
    /// has ended. Unknown: the owner is gone without telling, and the VM with
    /// it.
    pub(crate) async fn order(mut self, request: ControlRequest) -> io::Result<VmEnd> {
        self.socket.write_all(&[request as u8]).await?;
        let end = ending::receive(&mut self.socket).await;
        Ok(end.unwrap_or(VmEnd::unknown()))
    }
}

/// Looks for the VM with this name. None: no program of our own user has it.
pub(crate) async fn find(name: &Name) -> io::Result<Option<Found>> {
    // Usually it is there, and nothing has to be listed.
    if let Connected::Yes(connection) = Listener::usual(name).connect()? {
        return Ok(Visitor::ask(connection).await);
    }
    let mut listeners = our_listeners().await?;
    listeners.retain(|listener| listener.name == *name);
    let mut found = None;
    for listener in listeners {
        found = reach(&listener).await?.or(found);
        if matches!(found, Some(Found::Answering(_))) {
            break;
        }
    }
    Ok(found)
}

/// Every VM of our own user, in the order of their names. Owners that do not
/// answer are waited for [`MAX_WAITING`] at a time; other users cost no time.
pub(crate) async fn list() -> io::Result<Vec<(Name, Found)>> {
    let permits = Arc::new(Semaphore::new(MAX_WAITING));
    let mut asking = JoinSet::new();
    for listener in our_listeners().await? {
        let permits = permits.clone();
        asking.spawn(async move {
            // It is never closed.
            let _permit = permits.acquire().await;
            (reach(&listener).await, listener.name)
        });
    }
    let mut list = Vec::new();
    while let Some(asked) = asking.join_next().await {
        let (found, name) = asked.map_err(io::Error::other)?;
        if let Some(found) = found? {
            list.push((name, found));
        }
    }
    list.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(list)
}

/// Connects to a socket of our own user.
async fn reach(listener: &Listener) -> io::Result<Option<Found>> {
    Ok(match listener.connect()? {
        Connected::Yes(connection) => Visitor::ask(connection).await,
        Connected::QueueFull => Some(Found::NotAnswering { owner: None }),
        Connected::No => None,
    })
}
