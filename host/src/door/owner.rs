use std::{io, os::unix::net::UnixListener as StdUnixListener, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
};

use super::{Errand, Keepsake, Name, Plate, name::our_uid};
use crate::{
    error::Error,
    session::{Session, relay},
};

/// The owner's side: a claim to a name, at first closed.
#[derive(Debug)]
pub(crate) struct Door(StdUnixListener);

/// An open door. It is shut when this is dropped, a little later.
#[derive(Debug)]
pub(crate) struct OpenDoor(JoinHandle<()>);

impl OpenDoor {
    /// Shuts the door on those inside as well, and gives the name up.
    pub(crate) async fn shut(mut self) {
        self.0.abort();
        // It fails, because it was aborted.
        let _ = (&mut self.0).await;
    }
}

impl Drop for OpenDoor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Door {
    /// Claims the name. Visitors wait until the door is opened.
    pub(crate) fn claim(name: &Name) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::IdTaken {
                id: name.id().to_owned(),
            },
            _ => Error::Host {
                doing: "make the VM known to other programs",
                source,
            },
        };
        let listener = name
            .address()
            .and_then(|address| StdUnixListener::bind_addr(&address));
        listener.map(Self).map_err(failed)
    }

    /// Lets visitors in. `order` carries out what they ask of the VM itself,
    /// and returns when it is done.
    pub(crate) fn open<F, O>(
        self,
        plate: Plate,
        baseline: Arc<Keepsake>,
        session: Arc<Session>,
        order: F,
    ) -> Result<OpenDoor, Error>
    where
        F: Fn(Errand) -> O + Clone + Send + 'static,
        O: Future<Output = ()> + Send + 'static,
    {
        let listener = self
            .0
            .set_nonblocking(true)
            .and_then(|()| UnixListener::from_std(self.0))
            .map_err(Error::host("make the VM known to other programs"))?;
        let task = tokio::spawn(async move {
            let mut visits = JoinSet::new();
            loop {
                tokio::select! {
                    Some(_) = visits.join_next() => {}
                    visitor = listener.accept() => if let Ok((socket, _)) = visitor {
                        let (plate, baseline) = (plate.clone(), baseline.clone());
                        let (session, order) = (session.clone(), order.clone());
                        visits.spawn(receive(socket, plate, baseline, session, order));
                    }
                }
            }
        });
        Ok(OpenDoor(task))
    }
}

/// Serves one visitor. One that breaks off has changed its mind.
async fn receive<F, O>(
    mut socket: UnixStream,
    plate: Plate,
    baseline: Arc<Keepsake>,
    session: Arc<Session>,
    order: F,
) -> io::Result<()>
where
    F: Fn(Errand) -> O,
    O: Future<Output = ()>,
{
    // Strangers get not a word.
    if socket.peer_cred()?.uid() != our_uid() {
        return Ok(());
    }
    plate.send(&mut socket).await?;
    let mut errand = [0];
    socket.read_exact(&mut errand).await?;
    match Errand::from_byte(errand[0]) {
        None => {}
        Some(Errand::Attach) => relay(socket, session).await,
        Some(Errand::Baseline) => baseline.send(&mut socket).await?,
        Some(errand) => {
            order(errand).await;
            socket.write_all(&[errand as u8]).await?;
        }
    }
    Ok(())
}
