//! The kernel's own list of Unix sockets with their owners: sock_diag(7).
//!
//! It names the user who made a socket without connecting to it, which
//! `/proc/net/unix` does not.

use std::io;

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    },
};

// Of linux/netlink.h.
const HEADER: usize = 16;
const REQUEST: u16 = 0x1;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;

// Of linux/socket.h, linux/sock_diag.h and linux/unix_diag.h.
const UNIX: u8 = 1;
const STREAM: u8 = 1;
const BY_FAMILY: u16 = 20;
const REQUEST_SIZE: u32 = 24;
const MESSAGE: usize = 16;
const SHOW_NAME: u32 = 0x1;
const SHOW_UID: u32 = 0x40;
const NAME: u16 = 0;
const UID: u16 = 7;

// Of net/tcp_states.h, whose states Unix sockets have too.
const CLOSE: u32 = 7;
const LISTEN: u32 = 10;

/// The kernel sends no larger messages.
const LARGEST_MESSAGE: usize = 64 * 1024;

/// Calls `visit` with the abstract name (without its leading zero byte) and the
/// owner of each stream socket that listens or is not connected yet. Sockets
/// without an abstract name are left out.
///
/// It does not wait for anybody but the kernel.
///
/// # Errors
/// The kernel has no sock_diag for Unix sockets (`CONFIG_UNIX_DIAG`), or does
/// not name owners (before Linux 5.3).
pub(super) fn abstract_sockets(mut visit: impl FnMut(&[u8], u32)) -> io::Result<()> {
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&kernel, &request(), SendFlags::empty())?;
    let mut buffer = vec![0; LARGEST_MESSAGE];
    loop {
        let (count, _) = recv(&kernel, &mut buffer[..], RecvFlags::empty())?;
        let mut messages = buffer.get(..count).unwrap_or_default();
        if messages.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some((header, message, rest)) = next_message(messages) {
            match header {
                DONE => return Ok(()),
                ERROR => return Err(refusal(message)),
                BY_FAMILY => visit_socket(message, &mut visit)?,
                _ => {}
            }
            messages = rest;
        }
    }
}

/// A `nlmsghdr` with a `unix_diag_req`.
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((HEADER as u32 + REQUEST_SIZE).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend((REQUEST | DUMP).to_ne_bytes());
    // Sequence number and port, which a single request does not need.
    bytes.extend([0; 8]);
    // A protocol and padding follow.
    bytes.extend([UNIX, 0, 0, 0]);
    bytes.extend((1_u32 << LISTEN | 1 << CLOSE).to_ne_bytes());
    // No certain inode.
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend((SHOW_NAME | SHOW_UID).to_ne_bytes());
    // No certain cookie.
    bytes.extend([0xff; 8]);
    bytes
}

/// The type and the contents of the first message, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let size = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let message = bytes.get(HEADER..size)?;
    let rest = bytes.get(size.next_multiple_of(4)..).unwrap_or_default();
    Some((u16_at(bytes, 4)?, message, rest))
}

/// A `unix_diag_msg` with its attributes.
fn visit_socket(message: &[u8], visit: &mut impl FnMut(&[u8], u32)) -> io::Result<()> {
    let is_stream = message.get(1) == Some(&STREAM);
    let (mut name, mut uid) = (None, None);
    let mut attributes = message.get(MESSAGE..).unwrap_or_default();
    while let (Some(size), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let size = usize::from(size);
        let Some(value) = attributes.get(4..size) else {
            break;
        };
        match kind {
            NAME => name = Some(value),
            UID => uid = u32_at(value, 0),
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

/// The error that a message of the type `ERROR` carries.
fn refusal(message: &[u8]) -> io::Error {
    let number = u32_at(message, 0).map_or(0, u32::cast_signed);
    Errno::from_raw_os_error(number.wrapping_neg()).into()
}

fn u16_at(bytes: &[u8], place: usize) -> Option<u16> {
    let bytes = bytes.get(place..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], place: usize) -> Option<u32> {
    let bytes = bytes.get(place..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}
