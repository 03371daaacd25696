use alloc::string::String;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, getsockname, socket_with, sockopt},
};

use super::connect_error::describe;
use crate::clock::Moment;

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptError {
    /// It took too long.
    TimedOut,
    /// For this reason.
    Failed(String),
}

impl From<Errno> for AttemptError {
    fn from(errno: Errno) -> Self {
        Self::Failed(describe(errno))
    }
}

/// Connects to a port of the loopback interface, over IPv4 or else IPv6.
pub(super) fn dial(port: u16, deadline: Moment) -> Result<OwnedFd, AttemptError> {
    let old = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match dial_address(old, deadline) {
        Err(failed) if failed == AttemptError::from(Errno::CONNREFUSED) => {
            let new = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
            // The kernel may lack IPv6, so the first error is reported.
            dial_address(new, deadline).map_err(|_| failed)
        }
        outcome => outcome,
    }
}

fn dial_address(address: SocketAddr, deadline: Moment) -> Result<OwnedFd, AttemptError> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            wait(&socket, PollFlags::OUT, deadline)?;
            sockopt::socket_error(&socket)??;
        }
        Err(errno) => return Err(errno.into()),
    }
    // The kernel may have chosen this very port for the socket, which is then
    // connected to itself.
    let own = SocketAddr::try_from(getsockname(&socket)?)?;
    if own == address {
        return Err(Errno::CONNREFUSED.into());
    }
    Ok(socket)
}

/// Waits until a descriptor is ready.
pub(super) fn wait(on: &OwnedFd, what: PollFlags, deadline: Moment) -> Result<(), AttemptError> {
    loop {
        let mut wanted = [PollFd::new(on, what)];
        match poll(&mut wanted, Some(&time_left(deadline))) {
            Ok(0) => return Err(AttemptError::TimedOut),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Returns the time that is left until a deadline.
pub(super) fn time_left(deadline: Moment) -> Timespec {
    let left = deadline.nanoseconds_since(Moment::now());
    Timespec {
        tv_sec: i64::try_from(left.div_euclid(1_000_000_000)).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(left.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}
