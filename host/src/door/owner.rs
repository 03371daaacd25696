use std::{
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener as StdUnixListener},
    },
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use super::{Errand, Keepsake, Name, Plate, listener::our_listeners, name::our_uid};
use crate::{
    error::Error,
    random::random_bytes,
    session::{Session, relay},
};

/// How long to wait before the next visitor when the system refuses to accept
/// one, usually for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    ///
    /// # Errors
    /// [`Error::IdTaken`] if a program of our own user has it. That another user
    /// has bound its address does not matter.
    pub(crate) async fn claim(name: &Name) -> Result<Self, Error> {
        const DOING: &str = "make the VM known to other programs";
        match bind(&name.address()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound.map(Self).map_err(Error::host(DOING)),
        }
        let random = u64::from_ne_bytes(random_bytes()?);
        let spare = bind(&name.spare_address(random)).map_err(Error::host(DOING))?;
        // Only now: of two that are started at once, at least one sees the
        // other.
        let ours = our_listeners().await.map_err(Error::host(DOING))?;
        let same_id = ours.iter().filter(|other| other.name == *name);
        match same_id.count() {
            0 | 1 => Ok(Self(spare)),
            _ => Err(Error::IdTaken {
                id: name.id().to_owned(),
            }),
        }
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
                    visitor = listener.accept() => match visitor {
                        Ok((socket, _)) => {
                            let (plate, baseline) = (plate.clone(), baseline.clone());
                            let (session, order) = (session.clone(), order.clone());
                            visits.spawn(receive(socket, plate, baseline, session, order));
                        }
                        Err(error) => {
                            tracing::debug!(%error, "no visitor can be accepted");
                            // The end of a visit frees a descriptor. Nothing
                            // tells when other parts of the program free one.
                            tokio::select! {
                                Some(_) = visits.join_next() => {}
                                () = sleep(ACCEPT_PAUSE) => {}
                            }
                        }
                    }
                }
            }
        });
        Ok(OpenDoor(task))
    }
}

fn bind(address: &str) -> io::Result<StdUnixListener> {
    let address = SocketAddr::from_abstract_name(address)?;
    StdUnixListener::bind_addr(&address)
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
