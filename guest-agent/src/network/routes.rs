//! Addresses and routes of the loopback interface: rtnetlink(7).
//!
//! A packet to an address that is taken goes to the guest itself. Without a preferred
//! source it would come from the address that it goes to.

use alloc::vec::Vec;

use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
};

use super::prefix::{ALWAYS, OWN_V4, OWN_V6, Prefix, public_v4};

/// Adds the agent's own addresses.
pub(super) fn add_addresses() -> Result<(), Errno> {
    let mut messages = Messages::default();
    messages.add_address(&OWN_V4.octets(), AF_INET);
    messages.add_address(&OWN_V6.octets(), AF_INET6);
    messages.send()
}

/// Adds the routes of what is always taken.
pub(super) fn add_always() -> Result<(), Errno> {
    let mut messages = Messages::default();
    for prefix in ALWAYS.into_iter().chain(public_v4()) {
        messages.change_route(NEW_ROUTE, prefix);
    }
    messages.send()
}

/// Replaces the routes of one list by those of another.
pub(super) fn replace(old: &[Prefix], new: &[Prefix]) -> Result<(), Errno> {
    let mut messages = Messages::default();
    for prefix in old.iter().filter(|prefix| !new.contains(prefix)) {
        messages.change_route(DELETE_ROUTE, *prefix);
    }
    for prefix in new.iter().filter(|prefix| !old.contains(prefix)) {
        messages.change_route(NEW_ROUTE, *prefix);
    }
    messages.send()
}

// Of linux/netlink.h, rtnetlink.h, if_addr.h.
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NO_DUPLICATE_DETECTION: u8 = 2;
const RTA_DESTINATION: u16 = 1;
const RTA_OUTPUT_INTERFACE: u16 = 4;
const RTA_PREFERRED_SOURCE: u16 = 7;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_HOST: u8 = 254;
const TYPE_LOCAL: u8 = 2;

/// The index of `lo`, which is the first interface of a namespace.
const LOOPBACK: u32 = 1;

/// The size of a message's header.
const HEADER: usize = 16;

/// How many messages are sent at once: the kernel answers each, and the answers have to
/// fit into the socket's buffer.
const BATCH: usize = 64;

/// Messages to the kernel.
#[derive(Default)]
struct Messages(Vec<Vec<u8>>);

impl Messages {
    fn add_address(&mut self, address: &[u8], family: u8) {
        let length = bits(address.len());
        let mut body = Vec::from([family, length, NO_DUPLICATE_DETECTION, SCOPE_HOST]);
        body.extend(LOOPBACK.to_ne_bytes());
        add_attribute(&mut body, IFA_LOCAL, address);
        add_attribute(&mut body, IFA_ADDRESS, address);
        self.add(NEW_ADDRESS, &body);
    }

    fn change_route(&mut self, kind: u16, prefix: Prefix) {
        let (v4, own_v4);
        let (v6, own_v6);
        let (family, address, length, source): (u8, &[u8], u32, &[u8]) = match prefix.v4_address() {
            Some((address, length)) => {
                (v4, own_v4) = (address.octets(), OWN_V4.octets());
                (AF_INET, &v4, length, &own_v4)
            }
            None => {
                let (address, length) = prefix.address();
                (v6, own_v6) = (address.octets(), OWN_V6.octets());
                (AF_INET6, &v6, length, &own_v6)
            }
        };
        let mut body = Vec::from([family, u8::try_from(length).unwrap_or(0), 0, 0]);
        body.extend([TABLE_LOCAL, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL]);
        body.extend([0; 4]);
        if length > 0 {
            add_attribute(&mut body, RTA_DESTINATION, address);
        }
        add_attribute(&mut body, RTA_OUTPUT_INTERFACE, &LOOPBACK.to_ne_bytes());
        add_attribute(&mut body, RTA_PREFERRED_SOURCE, source);
        self.add(kind, &body);
    }

    fn add(&mut self, kind: u16, body: &[u8]) {
        let flags = match kind {
            DELETE_ROUTE => REQUEST | ACKNOWLEDGE,
            _ => REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE,
        };
        let length = u32::try_from(HEADER.saturating_add(body.len())).unwrap_or(0);
        let mut message = Vec::from(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        // A sequence number and the sender, which the kernel does not need.
        message.extend([0; 8]);
        message.extend_from_slice(body);
        self.0.push(message);
    }

    /// Sends all messages. What is there already is not an error, nor is what is gone
    /// already.
    fn send(&self) -> Result<(), Errno> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // NETLINK_ROUTE is 0.
            None,
        )?;
        for batch in self.0.chunks(BATCH) {
            send(&socket, &batch.concat(), SendFlags::empty())?;
            receive_answers(&socket, batch.len())?;
        }
        Ok(())
    }
}

/// Reads an answer to each message. The kernel has written them all when the messages
/// are sent.
fn receive_answers(socket: &OwnedFd, mut missing: usize) -> Result<(), Errno> {
    let mut result = Ok(());
    let mut buffer = [0; 4096];
    while missing > 0 {
        let (count, _) = recv(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
        let mut answers = buffer.get(..count).unwrap_or_default();
        while let Some((answer, rest)) = split_answer(answers) {
            answers = rest;
            missing = missing.saturating_sub(1);
            if let Some(errno) = answer
                && result.is_ok()
            {
                result = Err(errno);
            }
        }
    }
    result
}

/// Splits off the first answer, and returns its error.
fn split_answer(bytes: &[u8]) -> Option<(Option<Errno>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk::<2>()?;
    let errno = rest.get(HEADER.saturating_sub(6)..)?.first_chunk::<4>()?;
    let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
    let rest = bytes.get(padded(length).max(HEADER)..).unwrap_or_default();
    let errno = match i32::from_ne_bytes(*errno).checked_neg()? {
        _ if u16::from_ne_bytes(*kind) != ERROR => Some(Errno::PROTO),
        0 => None,
        errno => Some(Errno::from_raw_os_error(errno)),
    };
    let is_done = matches!(errno, Some(Errno::EXIST | Errno::SRCH | Errno::NOENT));
    Some((errno.filter(|_| !is_done), rest))
}

fn add_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len().saturating_add(4)).unwrap_or(0);
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(padded(body.len()), 0);
}

/// Returns a length with the padding to a multiple of four bytes.
fn padded(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn bits(bytes: usize) -> u8 {
    u8::try_from(bytes.saturating_mul(8)).unwrap_or(u8::MAX)
}
