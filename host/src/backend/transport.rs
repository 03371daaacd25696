use std::{
    ffi::OsString,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
};

use super::BootLink;
use crate::{error::Error, vsock::VsockListener};

/// How the agent is reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentTransport {
    /// A byte stream without ends, such as a serial port. What is sent waits
    /// until the agent is there.
    Port(UnixStream),
    /// vsock of which the VMM makes Unix sockets.
    Hybrid {
        /// Where the VMM takes connections to the guest.
        path: PathBuf,
        /// Where it makes one when the agent is ready.
        ready: UnixListener,
    },
    /// vsock by the host's kernel.
    Vsock {
        /// The guest's number.
        cid: u32,
        /// Where the agent connects when it is ready.
        ready: VsockListener,
    },
}

/// The port on which the agent listens. Those below are for root only.
pub(crate) const AGENT_PORT: u32 = 1024;

/// The port of the host to which the agent connects, where each VM has all
/// ports of the host to itself.
const READY_PORT: u32 = 1025;

impl AgentTransport {
    /// For a VMM that takes connections to the guest on a Unix socket at `path`
    /// and asks for their port with `CONNECT <port>`; and that turns connections
    /// of the guest to a port of the host into such to `<path>_<port>`. It must
    /// not run yet.
    ///
    /// # Errors
    /// [`Error::Host`] if there can be no socket.
    pub fn hybrid(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let mut ready = OsString::from(&path);
        ready.push(format!("_{READY_PORT}"));
        let ready = UnixListener::bind(ready).map_err(Error::host("listen for the agent"))?;
        Ok(Self::Hybrid { path, ready })
    }

    /// For a guest with this number in the host's kernel. It must not run yet.
    ///
    /// # Errors
    /// [`Error::Host`] if the kernel has no vsock.
    pub fn vsock(cid: u32) -> Result<Self, Error> {
        let ready = VsockListener::bind().map_err(Error::host("listen for the agent"))?;
        Ok(Self::Vsock { cid, ready })
    }

    /// What the agent has to be told.
    pub fn boot_link(&self) -> BootLink {
        let ready_port = match self {
            Self::Port(_) => return BootLink::Ports,
            Self::Hybrid { .. } => READY_PORT,
            Self::Vsock { ready, .. } => ready.port(),
        };
        BootLink::Vsock {
            port: AGENT_PORT,
            ready_port,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vmm_connects_beside_its_own_socket_when_the_agent_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let transport = AgentTransport::hybrid(folder.path().join("vsock")).unwrap();
        let expected = BootLink::Vsock {
            port: 1024,
            ready_port: 1025,
        };
        assert_eq!(transport.boot_link(), expected);
        UnixStream::connect(folder.path().join("vsock_1025")).unwrap();
    }

    #[test]
    fn a_vm_has_no_port_of_the_host_in_common_with_another() {
        // Not every kernel has vsock.
        let (Ok(one), Ok(other)) = (AgentTransport::vsock(77), AgentTransport::vsock(78)) else {
            return;
        };
        assert_ne!(one.boot_link(), other.boot_link());
    }
}
