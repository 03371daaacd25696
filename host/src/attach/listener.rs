//! The sockets of VMs, as the system lists them.

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
    /// The process id of that program. None: it is in another pid namespace.
    pub(super) owner: Option<u32>,
}

/// What came of an attempt to connect.
pub(super) enum ConnectOutcome {
    Connected(Connection),
    /// Too many wait to be accepted already. The kernel does not say by whom.
    QueueFull,
    /// Nobody listens, or another user does.
    NotOurs,
}

impl Listener {
    /// Where a VM is, unless another user held its address when it was started.
    pub(super) fn at_default_address(name: &VmName) -> Self {
        Self {
            name: name.clone(),
            address: name.address(),
        }
    }

    /// Connects, or fails, at once: there is no network in between, and a queue
    /// that is full is not waited for.
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

/// Every socket of a VM that belongs to our own user, in the order of their
/// names. Sockets of other users cost a look at the kernel's list, and are left
/// out whatever they are called.
pub(super) async fn our_listeners() -> io::Result<Vec<Listener>> {
    // The list is as long as other users make it.
    let listing = tokio::task::spawn_blocking(|| {
        let mut listeners = match by_owner() {
            Ok(listeners) => listeners,
            // A kernel that does not tell the owners of sockets.
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

/// As [`by_owner`], by connecting to all that have the name of one. Those whose
/// queue is full are left out: whose they are cannot be told.
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

/// The abstract address in a line of `/proc/net/unix`: kernel address, count,
/// protocol, flags, type, state, inode, path.
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
        // connect(2): what a non-blocking Unix socket is told of a full queue.
        Err(Errno::AGAIN) => Ok(Attempt::QueueFull),
        Err(Errno::CONNREFUSED) => Ok(Attempt::Refused),
        Err(errno) => Err(errno.into()),
    }
}
