use std::{borrow::Cow, fmt, str::FromStr};

use crate::error::Error;

/// What carries the bytes between the host and the agent of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// A virtio-serial port. Works everywhere.
    Serial,
    /// vsock by the host's kernel, through `/dev/vhost-vsock`.
    Vsock,
    /// vsock that ends in a Unix socket on the host: Firecracker's, Cloud
    /// Hypervisor's, or that of the program `vhost-device-vsock`.
    HybridVsock,
    /// A pair of sockets, where there is no VM.
    Socket,
    /// The program that owns the VM, which passes on what is said.
    Relay,
}

impl LinkKind {
    /// A name that never changes: `serial`, `vsock`, `hybrid-vsock`, `socket` or
    /// `relay`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Vsock => "vsock",
            Self::HybridVsock => "hybrid-vsock",
            Self::Socket => "socket",
            Self::Relay => "relay",
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Those that can be asked for.
impl FromStr for LinkKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Serial, Self::Vsock, Self::HybridVsock]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "{name:?} is no link: choose serial, vsock or hybrid-vsock"
                ))
            })
    }
}

/// A [`LinkKind`] and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChoice {
    /// What is used.
    pub kind: LinkKind,
    /// Why, for people.
    pub reason: Cow<'static, str>,
}

impl LinkChoice {
    /// A link, and why it.
    pub fn new(kind: LinkKind, reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Self { kind, reason }
    }

    /// What the caller insists on.
    pub(crate) fn requested(kind: LinkKind) -> Self {
        Self::new(kind, "asked for by the caller")
    }
}
