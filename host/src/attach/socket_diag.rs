//! Lists Unix sockets with their owners: sock_diag(7).
//!
//! Unlike `/proc/net/unix` it reports the user who created a socket.

use std::io;

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    },
};

// Of linux/netlink.h.
const NLMSG_HDRLEN: usize = 16;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

// Of linux/socket.h, linux/sock_diag.h and linux/unix_diag.h.
const AF_UNIX: u8 = 1;
const SOCK_STREAM: u8 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UNIX_DIAG_REQ_SIZE: u32 = 24;
const UNIX_DIAG_MSG_SIZE: usize = 16;
const UDIAG_SHOW_NAME: u32 = 0x1;
const UDIAG_SHOW_UID: u32 = 0x40;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_UID: u16 = 7;

// Of net/tcp_states.h, whose states Unix sockets have too.
const TCP_CLOSE: u32 = 7;
const TCP_LISTEN: u32 = 10;

/// The largest message that the kernel sends.
const MAX_MESSAGE_SIZE: usize = 64 * 1024;

/// Calls `visit` with the abstract name (without its leading zero byte) and the
/// owner of each stream socket that listens or is not connected yet. Leaves out
/// sockets without an abstract name. Waits for no other process.
///
/// # Errors
/// The kernel has no sock_diag for Unix sockets (`CONFIG_UNIX_DIAG`), or does
/// not report owners (before Linux 5.3).
pub(super) fn abstract_sockets(mut visit: impl FnMut(&[u8], u32)) -> io::Result<()> {
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&kernel, &request(), SendFlags::empty())?;
    let mut buffer = vec![0; MAX_MESSAGE_SIZE];
    loop {
        let (count, _) = recv(&kernel, &mut buffer[..], RecvFlags::empty())?;
        let mut messages = buffer.get(..count).unwrap_or_default();
        if messages.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some((header, message, rest)) = next_message(messages) {
            match header {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => return Err(error_of(message)),
                SOCK_DIAG_BY_FAMILY => visit_socket(message, &mut visit)?,
                _ => {}
            }
            messages = rest;
        }
    }
}

/// A `nlmsghdr` with a `unix_diag_req`.
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((NLMSG_HDRLEN as u32 + UNIX_DIAG_REQ_SIZE).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    // Sequence number and port, which a single request does not need.
    bytes.extend([0; 8]);
    // A protocol and padding follow.
    bytes.extend([AF_UNIX, 0, 0, 0]);
    bytes.extend((1_u32 << TCP_LISTEN | 1 << TCP_CLOSE).to_ne_bytes());
    // Any inode.
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend((UDIAG_SHOW_NAME | UDIAG_SHOW_UID).to_ne_bytes());
    // Any cookie.
    bytes.extend([0xff; 8]);
    bytes
}

/// Returns the type and the contents of the first message, and the rest.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let size = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let message = bytes.get(NLMSG_HDRLEN..size)?;
    let rest = bytes.get(size.next_multiple_of(4)..).unwrap_or_default();
    Some((u16_at(bytes, 4)?, message, rest))
}

/// Calls `visit` for a `unix_diag_msg` with its attributes.
fn visit_socket(message: &[u8], visit: &mut impl FnMut(&[u8], u32)) -> io::Result<()> {
    let is_stream = message.get(1) == Some(&SOCK_STREAM);
    let (mut name, mut uid) = (None, None);
    let mut attributes = message.get(UNIX_DIAG_MSG_SIZE..).unwrap_or_default();
    while let (Some(size), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let size = usize::from(size);
        let Some(value) = attributes.get(4..size) else {
            break;
        };
        match kind {
            UNIX_DIAG_NAME => name = Some(value),
            UNIX_DIAG_UID => uid = u32_at(value, 0),
            _ => {}
        }
        attributes = attributes
            .get(size.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    if let (true, Some([0, name @ ..])) = (is_stream, name) {
        let uid = uid.ok_or(io::ErrorKind::Unsupported)?;
        visit(name, uid);
    }
    Ok(())
}

/// Returns the error in a message of the type `NLMSG_ERROR`.
fn error_of(message: &[u8]) -> io::Error {
    let number = u32_at(message, 0).map_or(0, u32::cast_signed);
    Errno::from_raw_os_error(number.wrapping_neg()).into()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}
