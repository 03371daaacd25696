use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{bind, connect, listen},
};

use crate::sys::{VsockAddress, vsock_socket};

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 16;

/// Starts to listen. Connections from now on are accepted later.
pub(super) fn listen_on(port: u32) -> Result<OwnedFd, Errno> {
    let socket = vsock_socket()?;
    let address = VsockAddress {
        cid: VsockAddress::ANY,
        port,
    };
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Notifies the host that the agent listens, by connecting to a port of the host.
/// The kernel waits up to two seconds for the connection.
pub(super) fn notify_host(ready_port: u32) -> Result<(), Errno> {
    let address = VsockAddress {
        cid: VsockAddress::HOST,
        port: ready_port,
    };
    connect(vsock_socket()?, &address)
}
