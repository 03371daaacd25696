use alloc::vec::Vec;
use core::net::{Ipv6Addr, SocketAddrV6};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType, bind, listen, socket_with,
        sockopt::{set_ipv6_freebind, set_ipv6_v6only, set_socket_reuseaddr},
    },
};

use super::{
    lookup_program::lookup_program,
    prefix::{OWN_V4, Prefix},
    routes,
};
use crate::sys;

/// What makes connections to other machines arrive at the agent: addresses, routes,
/// two sockets, and the program that chooses them.
pub(super) struct Interception {
    pub(super) listener: OwnedFd,
    pub(super) datagrams: OwnedFd,
    map: OwnedFd,
    /// Holds the program.
    link: OwnedFd,
    /// The prefixes that are taken in addition to public addresses.
    extra: Vec<Prefix>,
}

/// The port of the listening socket. The program assigns connections of all ports to
/// it, so it only has to be one that no other program wants.
const LISTENER_PORT: u16 = 1;

/// The port of questions for names. Answers have to come from it.
pub(super) const DNS_PORT: u16 = 53;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

impl Interception {
    /// Takes connections from now on.
    pub(super) fn start(extra: Vec<Prefix>) -> Result<Self, Errno> {
        routes::add_addresses()?;
        let listener = socket(SocketType::STREAM, LISTENER_PORT)?;
        listen(&listener, BACKLOG)?;
        let datagrams = socket(SocketType::DGRAM, DNS_PORT)?;
        sys::report_destinations(&datagrams)?;
        // In the order of their numbers in the program.
        let map = sys::socket_map(&[listener.as_fd(), datagrams.as_fd()])?;
        let program = sys::load_lookup_program(&lookup_program(&map, &extra))?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let namespace = rustix::fs::open("/proc/self/ns/net", flags, Mode::empty())?;
        let link = sys::attach_lookup_program(&program, &namespace)?;
        // Until then the kernel rejects connections, because it has no route.
        routes::add_always()?;
        routes::replace(&[], &extra)?;
        Ok(Self {
            listener,
            datagrams,
            map,
            link,
            extra,
        })
    }

    /// Changes what is taken in addition to public addresses.
    pub(super) fn change(&mut self, extra: Vec<Prefix>) -> Result<(), Errno> {
        if self.extra == extra {
            return Ok(());
        }
        let program = sys::load_lookup_program(&lookup_program(&self.map, &extra))?;
        sys::replace_lookup_program(&self.link, &program)?;
        routes::replace(&self.extra, &extra)?;
        self.extra = extra;
        Ok(())
    }
}

/// Creates a socket for both families. It is bound to an address of IPv4, so that no
/// other program's is in its way.
fn socket(kind: SocketType, port: u16) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET6, kind, flags, None)?;
    set_ipv6_v6only(&socket, false)?;
    // A server of the guest may have the same port.
    set_socket_reuseaddr(&socket, true)?;
    // Answers come from any address that was asked.
    set_ipv6_freebind(&socket, true)?;
    let address: Ipv6Addr = OWN_V4.to_ipv6_mapped();
    bind(&socket, &SocketAddrV6::new(address, port, 0, 0))?;
    Ok(socket)
}
