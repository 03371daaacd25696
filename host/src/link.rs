use std::{borrow::Cow, fmt, str::FromStr};

use crate::error::Error;

/// What carries the bytes between the host and the agent of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// A virtio-serial port. Works on every host.
    Serial,
    /// vsock by the host's kernel, through `/dev/vhost-vsock`.
    Vsock,
    /// vsock that ends in a Unix socket on the host: Firecracker's, Cloud
    /// Hypervisor's, or that of the program `vhost-device-vsock`.
    HybridVsock,
    /// A socket pair, for backends without a VM.
    Socket,
    /// A relay by the program that owns the VM.
    Relay,
}

impl LinkKind {
    /// Returns a name that never changes: `serial`, `vsock`, `hybrid-vsock`,
    /// `socket` or `relay`.
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

/// Parses the kinds that a caller can require.
impl FromStr for LinkKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Serial, Self::Vsock, Self::HybridVsock]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "{name:?} is not a kind of link: choose serial, vsock or hybrid-vsock"
                ))
            })
    }
}

/// A [`LinkKind`] and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChoice {
    /// What is used.
    pub kind: LinkKind,
    /// The reason, as text for people.
    pub reason: Cow<'static, str>,
}

impl LinkChoice {
    /// Creates a choice with its reason.
    pub fn new(kind: LinkKind, reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Self { kind, reason }
    }

    /// The kind that the caller requires.
    pub(crate) fn requested(kind: LinkKind) -> Self {
        Self::new(kind, "asked for by the caller")
    }
}
