/// What is wrong with a port.
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
        /// The error number of the guest's kernel, if it had a part in it.
        errno: Option<i32>,
        /// The agent's words.
        text: String,
    },

    /// A program of this machine, perhaps this one, has the port already.
    #[error(
        "port {port} of this machine is taken: choose another one, or none and a free one is found"
    )]
    HostPortTaken {
        /// The port of this machine.
        port: u16,
    },

    /// The system does not let this program have the port.
    #[error(
        "port {port} of this machine is not permitted: choose one from 1024 on, or none and a free one is found"
    )]
    HostPortDenied {
        /// The port of this machine.
        port: u16,
    },

    /// A text or a number says nothing about ports.
    #[error(
        "{text:?} is no port to publish: write GUEST_PORT or HOST_PORT:GUEST_PORT, for example 8080 or 18080:8080"
    )]
    BadMapping {
        /// The text.
        text: String,
    },
}

impl PortError {
    /// A name for the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NobodyListens { .. } => "nobody-listens",
            Self::Unreachable { .. } => "port-unreachable",
            Self::HostPortTaken { .. } => "host-port-taken",
            Self::HostPortDenied { .. } => "host-port-denied",
            Self::BadMapping { .. } => "bad-port-mapping",
        }
    }
}

fn errno_text(errno: Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| {
        format!(": {}", std::io::Error::from_raw_os_error(errno))
    })
}
