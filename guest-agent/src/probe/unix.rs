use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::tcp::AttemptError;

/// Succeeds if the socket with this path accepts connections.
pub(super) fn attempt(path: &[u8]) -> Result<(), AttemptError> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // A Unix socket connects at once, or fails because its backlog is full.
    Ok(connect(&socket, &address)?)
}
