use std::os::unix::net::UnixStream as StdUnixStream;

use tokio::net::UnixStream;
use vmcell_wire::reset::ResetKey;

use super::{Address, Link, LinkError};

/// How to reach an agent again when the runtime of its first link is gone.
#[derive(Debug)]
pub(crate) enum Route {
    /// Through the same serial port, with a reset.
    Serial {
        socket: StdUnixStream,
        key: ResetKey,
    },
    /// Through a new connection.
    Address(Address),
}

impl Route {
    /// Makes a link on the current runtime. It replaces the link before it.
    pub(crate) async fn link(&self) -> Result<Link, LinkError> {
        match self {
            Self::Serial { socket, key } => {
                let socket = UnixStream::from_std(socket.try_clone()?)?;
                Ok(Link::used_serial(socket, *key))
            }
            Self::Address(address) => Link::dial(address.clone()).await,
        }
    }
}
