use alloc::{string::String, vec::Vec};
use core::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use rustix::{fd::OwnedFd, net::sockopt::set_socket_linger};
use vmcell_wire::network::{Target, Want};

/// The connections that the host has neither accepted nor refused.
#[derive(Default)]
pub(super) struct WaitingConnections(Vec<WaitingConnection>);

/// A connection that waits for the host's decision. The program takes it for
/// established, and may have sent data.
pub(super) struct WaitingConnection {
    pub(super) ticket: u32,
    pub(super) socket: OwnedFd,
    pub(super) destination: Destination,
    pub(super) port: u16,
}

/// What a program connects to.
pub(super) enum Destination {
    Name(String),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl WaitingConnections {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, connection: WaitingConnection) {
        self.0.push(connection);
    }

    /// Removes the one with this ticket.
    pub(super) fn take(&mut self, ticket: u32) -> Option<WaitingConnection> {
        let mut all = self.0.iter();
        let index = all.position(|connection| connection.ticket == ticket)?;
        Some(self.0.swap_remove(index))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingConnection> {
        self.0.iter()
    }

    pub(super) fn reset_all(&mut self) {
        for connection in core::mem::take(&mut self.0) {
            reset(connection.socket);
        }
    }
}

impl WaitingConnection {
    pub(super) fn want(&self) -> Want<'_> {
        Want::Connect {
            ticket: self.ticket,
            target: match &self.destination {
                Destination::Name(name) => Target::Name(name),
                Destination::V4(address) => Target::V4(address.octets()),
                Destination::V6(address) => Target::V6(address.octets()),
            },
            port: self.port,
        }
    }
}

impl Destination {
    /// Returns the name or address, for display.
    pub(super) fn text(self) -> String {
        match self {
            Self::Name(name) => name,
            // The formats of the addresses themselves would take much more code.
            Self::V4(address) => {
                let [a, b, c, d] = address.octets();
                alloc::format!("{a}.{b}.{c}.{d}")
            }
            Self::V6(address) => {
                let [a, b, c, d, e, f, g, h] = address.segments();
                alloc::format!("[{a:x}:{b:x}:{c:x}:{d:x}:{e:x}:{f:x}:{g:x}:{h:x}]")
            }
        }
    }
}

/// Resets a connection, so that the program gets an error: SO_LINGER in socket(7).
pub(super) fn reset(socket: OwnedFd) {
    // On an error the connection is closed instead.
    let _ = set_socket_linger(&socket, Some(Duration::ZERO));
}
