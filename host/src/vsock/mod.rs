//! vsock through the host's kernel: vsock(7). The crate `tokio-vsock` would save 24
//! of these lines and bring twelve crates.

#[cfg(test)]
mod tests;

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, VsockAddr, bind, connect as start_connect,
    getpeername, getsockname, listen as start_listen, socket,
};
use rustix::net::{SocketFlags, accept_with};
use tokio::{io::Interest, net::UnixStream};

/// A listening vsock port of this machine, for connections from guests.
#[derive(Debug)]
pub struct VsockListener {
    socket: OwnedFd,
    port: u32,
}

impl VsockListener {
    /// Listens on a free port.
    ///
    /// # Errors
    /// The kernel does not support vsock.
    pub fn bind() -> io::Result<Self> {
        let socket = new_socket()?;
        bind(socket.as_raw_fd(), &VsockAddr::new(VMADDR_ANY, VMADDR_ANY))?;
        start_listen(&socket, Backlog::new(8)?)?;
        let address: VsockAddr = getsockname(socket.as_raw_fd())?;
        let port = address.port();
        Ok(Self { socket, port })
    }

    /// Returns the port number.
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Waits until the guest with this CID has connected. Closes connections of
    /// others.
    ///
    /// Cancel safe.
    pub(crate) async fn accept_from(self, cid: u32) -> io::Result<()> {
        let socket = into_async(self.socket)?;
        loop {
            let accept = || Ok(accept_with(&socket, SocketFlags::CLOEXEC)?);
            let peer = socket.async_io(Interest::READABLE, accept).await?;
            let address: Result<VsockAddr, _> = getpeername(peer.as_raw_fd());
            if address.is_ok_and(|address| address.cid() == cid) {
                return Ok(());
            }
        }
    }
}

/// Connects to a vsock port of a guest.
///
/// Cancel safe.
pub(crate) async fn connect(cid: u32, port: u32) -> io::Result<UnixStream> {
    let socket = new_socket()?;
    match start_connect(socket.as_raw_fd(), &VsockAddr::new(cid, port)) {
        Ok(()) | Err(nix::Error::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let socket = into_async(socket)?;
    socket.writable().await?;
    match socket.take_error()? {
        Some(error) => Err(error),
        None => Ok(socket),
    }
}

/// Registers a socket with the runtime. tokio has no type for vsock, but its
/// Unix stream reads and writes sockets of any family.
fn into_async(socket: OwnedFd) -> io::Result<UnixStream> {
    UnixStream::from_std(StdUnixStream::from(socket))
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let family = AddressFamily::Vsock;
    Ok(socket(family, SockType::Stream, flags, None)?)
}

/// `VMADDR_CID_ANY` and `VMADDR_PORT_ANY` of `linux/vm_sockets.h`.
const VMADDR_ANY: u32 = u32::MAX;
