use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType, connect, getsockname, socket_with,
        sockopt::set_tcp_nodelay,
    },
};

/// An attempt to connect to a port of the loopback interface.
///
/// A server may listen on either loopback address: ::1 is tried when 127.0.0.1
/// refuses.
pub(super) struct Dial {
    address: SocketAddr,
    /// The error of the attempt with 127.0.0.1.
    refusal: Option<Errno>,
}

/// The state of an attempt.
pub(super) enum DialState {
    /// The attempt is in progress.
    InProgress,
    /// The connection is established.
    Connected,
    /// This new socket tries the other address.
    Replaced(OwnedFd),
}

impl Dial {
    /// Begins to connect.
    pub(super) fn begin(port: u16) -> Result<(Self, OwnedFd), Errno> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = socket_for(address)?;
        let dial = Self {
            address,
            refusal: None,
        };
        Ok((dial, socket))
    }

    /// Polls the attempt. On the loopback interface the outcome is known when
    /// the first `connect` returns, but only a second call returns it.
    pub(super) fn poll(&mut self, socket: &OwnedFd) -> Result<DialState, Errno> {
        let answer = match connect(socket, &self.address) {
            Err(Errno::INPROGRESS) => connect(socket, &self.address),
            answer => answer,
        };
        match answer {
            Ok(()) | Err(Errno::ISCONN) if self.is_self_connected(socket) => self.refused(),
            Ok(()) | Err(Errno::ISCONN) => {
                // An error only costs speed.
                let _ = set_tcp_nodelay(socket, true);
                Ok(DialState::Connected)
            }
            Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Ok(DialState::InProgress),
            Err(Errno::CONNREFUSED) => self.refused(),
            Err(error) => Err(self.refusal.unwrap_or(error)),
        }
    }

    /// Returns whether the socket is connected to itself. When no program
    /// listens, the kernel may choose the destination port as the socket's own.
    fn is_self_connected(&self, socket: &OwnedFd) -> bool {
        let ours = getsockname(socket).and_then(SocketAddr::try_from);
        ours.is_ok_and(|ours| ours == self.address)
    }

    fn refused(&mut self) -> Result<DialState, Errno> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        self.refusal = Some(Errno::CONNREFUSED);
        self.address = SocketAddr::from((Ipv6Addr::LOCALHOST, self.address.port()));
        // The kernel may lack IPv6.
        socket_for(self.address)
            .map(DialState::Replaced)
            .map_err(|_| Errno::CONNREFUSED)
    }
}

fn socket_for(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::STREAM, flags, None)
}
