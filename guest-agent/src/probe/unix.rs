use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::tcp::Failed;

/// Whether the socket with this path takes connections.
pub(super) fn attempt(path: &[u8]) -> Result<(), Failed> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Such a connection is there at once, or there is no room for it.
    Ok(connect(&socket, &address)?)
}
