use super::{
    Connection, PortError, PortMapping, PublishedPort,
    dial::{DialError, dial},
};
use crate::{error::Error, vm::Vm};

/// The ports of a VM: see [`port`](crate::port).
#[derive(Clone, Debug)]
pub struct Ports {
    vm: Vm,
}

impl Ports {
    pub(crate) fn new(vm: Vm) -> Self {
        Self { vm }
    }

    /// Connects to a program that listens on a port of the guest's loopback.
    ///
    /// A program that listens and does not accept may block this for ever: set
    /// a timeout.
    ///
    /// # Errors
    /// [`Error::Port`] of the kind
    /// [`NobodyListens`](super::PortError::NobodyListens) if no program listens
    /// there; [`Error::Busy`] if there are too many connections;
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the connection.
    pub async fn dial(&self, port: u16) -> Result<Connection, Error> {
        match dial(self.vm.session(), port).await {
            Ok(connection) => Ok(connection),
            Err(DialError::Open(error)) => Err(self.vm.open_error(error)),
            Err(DialError::Link(error)) => Err(self.vm.explain(error).await),
            Err(DialError::Port(error)) => Err(error.into()),
            Err(DialError::UnexpectedReply) => Err(Error::unexpected_reply()),
        }
    }

    /// Publishes a port of the guest on 127.0.0.1 of this machine: a given port,
    /// or one that is free.
    ///
    /// No program needs to listen in the guest yet. Until one does, clients see
    /// their connections reset. A published port has at most 256 connections at
    /// once; further ones wait to be accepted.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let anywhere = vm.ports().publish(8080).await?;
    /// println!("{}", anywhere.host_port());
    /// vm.ports().publish((18080, 8080)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Port`]: the port of this machine is
    /// [taken](super::PortError::HostPortTaken) or [not
    /// permitted](super::PortError::HostPortDenied), a port is zero, or the network policy
    /// of the VM does [not allow](super::PortError::NotAllowed) it. [`Error::Gone`] if the
    /// VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing is published.
    pub async fn publish(&self, mapping: impl Into<PortMapping>) -> Result<PublishedPort, Error> {
        self.vm.check_running()?;
        if !self.vm.network_status().await?.published_ports {
            return Err(PortError::NotAllowed.into());
        }
        let session = self.vm.shared_session();
        let published = self.vm.published_ports();
        let until = std::future::pending();
        published
            .publish(mapping.into(), None, session, until)
            .await
    }

    /// Returns the open port that this handle of the VM or a clone has published
    /// for a port of the guest, or `None`. If there are several, the oldest.
    pub fn get(&self, guest_port: u16) -> Option<PublishedPort> {
        let mut open = self.list().into_iter();
        open.find(|port| port.guest_port() == guest_port)
    }

    /// Returns the open ports that this handle of the VM and its clones have
    /// published.
    pub fn list(&self) -> Vec<PublishedPort> {
        self.vm.published_ports().list()
    }
}
