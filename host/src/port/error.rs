/// An error of a port operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// No program of the guest listens on the port.
    #[error(
        "nobody listens on port {port} of the guest: start a server there, or wait until it is ready"
    )]
    NobodyListens {
        /// The guest's port.
        port: u16,
    },

    /// The guest could not make the connection.
    #[error("port {port} of the guest cannot be reached: {text}{}", errno_text(*errno))]
    Unreachable {
        /// The guest's port.
        port: u16,
        /// The errno of the guest's kernel, if a system call failed.
        errno: Option<i32>,
        /// The agent's message.
        text: String,
    },

    /// A program on this machine, perhaps this one, already uses the port.
    #[error("port {port} of this machine is in use: choose another one, or none to get a free one")]
    HostPortTaken {
        /// The port of this machine.
        port: u16,
    },

    /// The system does not let this program have the port.
    #[error(
        "port {port} of this machine is not permitted: choose one from 1024 on, or none to get a free one"
    )]
    HostPortDenied {
        /// The port of this machine.
        port: u16,
    },

    /// The network policy of the VM does not allow it.
    #[error(
        "the network policy of the VM does not allow published ports: choose \
         egress+published-ports (`NetworkPolicy::published_ports`)"
    )]
    NotAllowed,

    /// The text or the numbers are not a valid port mapping.
    #[error(
        "{text:?} is not a port mapping: write GUEST_PORT or HOST_PORT:GUEST_PORT, for example 8080 or 18080:8080"
    )]
    BadMapping {
        /// The text.
        text: String,
    },
}

impl PortError {
    /// Returns a stable name of the kind of error, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NobodyListens { .. } => "nobody-listens",
            Self::Unreachable { .. } => "port-unreachable",
            Self::HostPortTaken { .. } => "host-port-taken",
            Self::HostPortDenied { .. } => "host-port-denied",
            Self::NotAllowed => "port-not-allowed",
            Self::BadMapping { .. } => "bad-port-mapping",
        }
    }
}

fn errno_text(errno: Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| {
        format!(": {}", std::io::Error::from_raw_os_error(errno))
    })
}
