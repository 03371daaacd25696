use std::{io, os::unix::net::UnixStream as StdUnixStream, time::Duration};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt, net::UnixStream, task::JoinSet, time::timeout};

use super::{Errand, Keepsake, Name, Plate, ending, name::our_uid};
use crate::vm::VmEnd;

/// The visitor's side: in front of a VM that another program owns.
#[derive(Debug)]
pub(crate) struct Visitor {
    socket: UnixStream,
    pub(crate) plate: Plate,
    /// The program that owns the VM.
    pub(crate) owner: u32,
}

/// How long an owner may take to come to the door.
const PATIENCE: Duration = Duration::from_secs(2);

impl Visitor {
    /// Goes to a VM. Where nobody of our own user listens there is none.
    pub(crate) async fn knock(name: &Name) -> io::Result<Self> {
        // It connects at once or not at all: there is no network in between.
        let socket = StdUnixStream::connect_addr(&name.address()?)?;
        socket.set_nonblocking(true)?;
        let mut socket = UnixStream::from_std(socket)?;
        let owner = socket.peer_cred()?;
        if owner.uid() != our_uid() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let plate = timeout(PATIENCE, Plate::receive(&mut socket)).await??;
        Ok(Self {
            socket,
            plate,
            owner: owner.pid().map_or(0, i32::unsigned_abs),
        })
    }

    /// Goes in. What follows on the socket is the wire protocol.
    pub(crate) async fn attach(mut self) -> io::Result<UnixStream> {
        self.socket.write_all(&[Errand::Attach as u8]).await?;
        Ok(self.socket)
    }

    /// Asks how the workspace was. Empty: the owner does not know.
    pub(crate) async fn baseline(mut self) -> io::Result<Bytes> {
        self.socket.write_all(&[Errand::Baseline as u8]).await?;
        Keepsake::receive(&mut self.socket).await
    }

    /// Has the owner stop or kill the VM or only watch it, and waits until it
    /// has ended. Unknown: the owner is gone without telling, and the VM with
    /// it.
    pub(crate) async fn order(mut self, errand: Errand) -> io::Result<VmEnd> {
        self.socket.write_all(&[errand as u8]).await?;
        let end = ending::receive(&mut self.socket).await;
        Ok(end.unwrap_or(VmEnd::unknown()))
    }
}

/// Every VM of our own user whose owner comes to the door, in the order of
/// their names.
pub(crate) async fn list() -> io::Result<Vec<(Name, Visitor)>> {
    // At once: an owner that stands still keeps nobody waiting for the others.
    let mut knocking = JoinSet::new();
    for name in Name::all()? {
        knocking.spawn(async { (Visitor::knock(&name).await, name) });
    }
    let mut found = Vec::new();
    while let Some(knocked) = knocking.join_next().await {
        if let Ok((Ok(visitor), name)) = knocked {
            found.push((name, visitor));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}
