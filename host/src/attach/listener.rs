//! Finds the sockets of VMs in the system's list of sockets.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
};
use tokio::net::UnixStream;

use super::{VmName, name::our_uid, socket_diag::abstract_sockets};

/// The socket of a VM of our own user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listener {
    pub(super) name: VmName,
    address: String,
}

/// A connection to a program of our own user.
pub(super) struct Connection {
    pub(super) socket: UnixStream,
    /// The process id of that program. `None` if it is in another pid namespace.
    pub(super) owner: Option<u32>,
}

/// The outcome of an attempt to connect.
pub(super) enum ConnectOutcome {
    Connected(Connection),
    /// The queue of connections to accept is full. The kernel does not report
    /// who owns the socket.
    QueueFull,
    /// No program listens, or one of another user.
    NotOurs,
}

impl Listener {
    /// The address of a VM, unless another user held it when the VM was started.
    pub(super) fn at_default_address(name: &VmName) -> Self {
        Self {
            name: name.clone(),
            address: name.address(),
        }
    }

    /// Connects without waiting: there is no network in between, and a full queue
    /// is not waited for.
    pub(super) fn connect(&self) -> io::Result<ConnectOutcome> {
        match connect_to(&self.address)? {
            Attempt::Connected { socket, uid, pid } if uid == our_uid() => {
                let socket = UnixStream::from_std(StdUnixStream::from(socket))?;
                let owner = u32::try_from(pid).ok().filter(|&pid| pid != 0);
                Ok(ConnectOutcome::Connected(Connection { socket, owner }))
            }
            Attempt::QueueFull => Ok(ConnectOutcome::QueueFull),
            Attempt::Connected { .. } | Attempt::Refused => Ok(ConnectOutcome::NotOurs),
        }
    }
}

/// Returns the sockets of all VMs of our own user, by name. Ignores sockets of
/// other users, whatever their name; they cost only an entry in the kernel's
/// list.
pub(super) async fn our_listeners() -> io::Result<Vec<Listener>> {
    // Other users can make the list long.
    let listing = tokio::task::spawn_blocking(|| {
        let mut listeners = match by_owner() {
            Ok(listeners) => listeners,
            // The kernel does not report the owners of sockets.
            Err(_) => by_connecting()?,
        };
        listeners.sort();
        listeners.dedup();
        Ok(listeners)
    });
    listing.await.map_err(io::Error::other)?
}

pub(super) fn by_owner() -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    let our_uid = our_uid();
    abstract_sockets(|address, uid| {
        if uid == our_uid {
            listeners.extend(str::from_utf8(address).ok().and_then(listener));
        }
    })?;
    Ok(listeners)
}

/// As [`by_owner`], by connecting to all sockets with the name of one. Leaves out
/// those whose queue is full, because their owner cannot be found out.
pub(super) fn by_connecting() -> io::Result<Vec<Listener>> {
    let sockets = std::fs::read("/proc/net/unix")?;
    let sockets = String::from_utf8_lossy(&sockets);
    let listeners = sockets
        .lines()
        .filter_map(listening_address)
        .filter_map(listener);
    let is_ours = |listener: &Listener| {
        matches!(
            connect_to(&listener.address),
            Ok(Attempt::Connected { uid, .. }) if uid == our_uid()
        )
    };
    Ok(listeners.filter(is_ours).collect())
}

fn listener(address: &str) -> Option<Listener> {
    Some(Listener {
        name: VmName::from_address(address)?,
        address: address.to_owned(),
    })
}

/// Returns the abstract address in a line of `/proc/net/unix` if the socket
/// listens. The fields are: kernel address, count, protocol, flags, type, state,
/// inode, path.
fn listening_address(line: &str) -> Option<&str> {
    const ACCEPTS_CONNECTIONS: &str = "00010000";
    let mut words = line.split_ascii_whitespace();
    let flags = words.nth(3)?;
    let path = words.nth(3)?.strip_prefix('@')?;
    (flags == ACCEPTS_CONNECTIONS).then_some(path)
}

enum Attempt {
    Connected { socket: OwnedFd, uid: u32, pid: i32 },
    QueueFull,
    Refused,
}

fn connect_to(address: &str) -> io::Result<Attempt> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new_abstract_name(address.as_bytes())?;
    match connect(&socket, &address) {
        Ok(()) => {
            let peer = getsockopt(&socket, PeerCredentials)?;
            Ok(Attempt::Connected {
                socket,
                uid: peer.uid(),
                pid: peer.pid(),
            })
        }
        // connect(2): the error of a non-blocking Unix socket for a full queue.
        Err(Errno::AGAIN) => Ok(Attempt::QueueFull),
        Err(Errno::CONNREFUSED) => Ok(Attempt::Refused),
        Err(errno) => Err(errno.into()),
    }
}
