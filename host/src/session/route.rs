use std::os::unix::net::UnixStream as StdUnixStream;

use tokio::net::UnixStream;
use vmcell_wire::reset::ResetKey;

use super::{Address, Link, LinkError};

/// The way to another conversation with an agent, for when the runtime that the
/// first one belonged to is gone.
#[derive(Debug)]
pub(crate) enum Route {
    /// The same serial port, which outlives conversations.
    Serial {
        socket: StdUnixStream,
        key: ResetKey,
    },
    /// A new connection.
    Address(Address),
}

impl Route {
    /// Makes a link that belongs to the current runtime. What was said on the
    /// link before it is over.
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
