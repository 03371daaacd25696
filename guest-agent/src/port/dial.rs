use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType, connect, getsockname, socket_with,
        sockopt::set_tcp_nodelay,
    },
};

/// An attempt to connect to a port of the loopback.
///
/// A server may listen on either address of it: ::1 is tried when nobody
/// listens on 127.0.0.1.
pub(super) struct Dial {
    address: SocketAddr,
    /// What 127.0.0.1 has answered.
    refusal: Option<Errno>,
}

/// How far an attempt is.
pub(super) enum Dialled {
    /// Whether somebody listens is not known yet.
    Waiting,
    /// Somebody has taken the connection.
    Taken,
    /// Another socket tries the other address.
    Instead(OwnedFd),
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

    /// Asks how far it is. The loopback knows before the first call is over,
    /// but says so only to the second one.
    pub(super) fn ask(&mut self, socket: &OwnedFd) -> Result<Dialled, Errno> {
        let answer = match connect(socket, &self.address) {
            Err(Errno::INPROGRESS) => connect(socket, &self.address),
            answer => answer,
        };
        match answer {
            Ok(()) | Err(Errno::ISCONN) if self.has_found_itself(socket) => self.refused(),
            Ok(()) | Err(Errno::ISCONN) => {
                // It costs speed only.
                let _ = set_tcp_nodelay(socket, true);
                Ok(Dialled::Taken)
            }
            Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Ok(Dialled::Waiting),
            Err(Errno::CONNREFUSED) => self.refused(),
            Err(error) => Err(self.refusal.unwrap_or(error)),
        }
    }

    /// Where nobody listens, the kernel may give a socket the very port that it
    /// is to connect to. It is then its own peer.
    fn has_found_itself(&self, socket: &OwnedFd) -> bool {
        let ours = getsockname(socket).and_then(SocketAddr::try_from);
        ours.is_ok_and(|ours| ours == self.address)
    }

    fn refused(&mut self) -> Result<Dialled, Errno> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        self.refusal = Some(Errno::CONNREFUSED);
        self.address = SocketAddr::from((Ipv6Addr::LOCALHOST, self.address.port()));
        // A kernel may be without it.
        socket_for(self.address)
            .map(Dialled::Instead)
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
