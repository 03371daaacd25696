use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{bind, connect, listen},
};

use crate::sys::{VsockAddress, vsock_socket};

/// Hosts that have connected and not been served yet.
const BACKLOG: i32 = 16;

/// Begins to listen. Whoever connects from now on is served.
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

/// Tells the host that we listen: that somebody connects there is all that it
/// waits for. The kernel waits two seconds for its answer.
pub(super) fn tell_host(ready_port: u32) -> Result<(), Errno> {
    let address = VsockAddress {
        cid: VsockAddress::HOST,
        port: ready_port,
    };
    connect(vsock_socket()?, &address)
}
