use std::{
    ffi::OsString,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
};

use super::BootLink;
use crate::{error::Error, vsock::VsockListener};

/// The transport between host and agent.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentTransport {
    /// A byte stream without connections, such as a serial port. Data that is
    /// sent is buffered until the agent is there.
    Serial(UnixStream),
    /// vsock that the VMM maps to Unix sockets.
    Hybrid {
        /// The Unix socket where the VMM accepts connections to the guest.
        path: PathBuf,
        /// Where the VMM connects when the agent is ready.
        ready: UnixListener,
    },
    /// vsock by the host's kernel.
    Vsock {
        /// The guest's CID.
        cid: u32,
        /// Where the agent connects when it is ready.
        ready: VsockListener,
    },
}

/// The port on which the agent listens. Lower ports are for root only.
pub(crate) const AGENT_PORT: u32 = 1024;

/// The port of the host to which the agent connects when it is ready, where
/// each VM has a port range of its own.
const READY_PORT: u32 = 1025;

impl AgentTransport {
    /// Creates the transport for a VMM that accepts connections to the guest on
    /// a Unix socket at `path`, selects their port with `CONNECT <port>`, and
    /// forwards connections of the guest to a port of the host to
    /// `<path>_<port>`. The VMM must not run yet.
    ///
    /// # Errors
    /// [`Error::Host`] if the socket cannot be created.
    pub fn hybrid(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let mut ready = OsString::from(&path);
        ready.push(format!("_{READY_PORT}"));
        let ready = UnixListener::bind(ready).map_err(Error::host("listen for the agent"))?;
        Ok(Self::Hybrid { path, ready })
    }

    /// Creates the transport for a guest with this CID in the host's kernel.
    /// The guest must not run yet.
    ///
    /// # Errors
    /// [`Error::Host`] if the kernel has no vsock.
    pub fn vsock(cid: u32) -> Result<Self, Error> {
        let ready = VsockListener::bind().map_err(Error::host("listen for the agent"))?;
        Ok(Self::Vsock { cid, ready })
    }

    /// Returns what the boot file tells the agent about the link.
    pub fn boot_link(&self) -> BootLink {
        let ready_port = match self {
            Self::Serial(_) => return BootLink::Serial,
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
