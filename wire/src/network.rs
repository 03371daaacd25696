//! Connections that begin in the guest.
//!
//! The guest has no network. Its agent takes the connections that programs make, and
//! names what each wants to reach; the host decides, and makes the connection in its
//! place.
//!
//! ```text
//!  program          agent                                 host
//!  look-up ───────> Want::Lookup {ticket, name} ────────> decides
//!          <─────── address       <── Answer::Allow {ticket}
//!  connect ───────> Want::Connect {ticket, name, port} ─> decides, connects
//!          <──────────────── data ──> NetworkRequest::Accept {ticket}
//! ```
//!
//! The wants are [records](crate::files::record) on the channel `Stdout` of a
//! [`Capture`](NetworkRequest::Capture), so the host's credit bounds them. Its answers are
//! records on the channel `Stdin`.
//!
//! A name is what the guest claims: the host must not believe it to be any program's.

use serde::{Deserialize, Serialize};

use crate::{
    limits::MAX_HOST_NAME,
    request_properties::{Outputs, Recovery, StartEvent},
};

/// A request about connections that begin in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NetworkRequest<'a> {
    /// Takes all connections of programs to other machines, and answers their questions
    /// for names: [`Want::Ready`] when it does, then one [`Want`] for each. It replaces an
    /// earlier one, which ends with [`Outcome::Done`](crate::Outcome::Done), and has what
    /// waited for that one's answer. When the stream is cancelled or the link is lost,
    /// connections that were not accepted are reset, and new ones at once.
    Capture {
        /// Addresses to take that are not public, [`PREFIX_LEN`] bytes for each: an
        /// IPv6 address, or an IPv4 address mapped to one, and the number of its leading
        /// bits that count. At most
        /// [`MAX_CAPTURED_PREFIXES`](crate::limits::MAX_CAPTURED_PREFIXES) are used.
        #[serde(with = "serde_bytes")]
        prefixes: &'a [u8],
    },
    /// Accepts a connection of a program: [`Event::Connected`](crate::Event::Connected),
    /// then as [`Request::Dial`](crate::Request::Dial). It fails with
    /// [`NotFound`](crate::FailureKind::NotFound) if the program has given up.
    Accept {
        /// The number of the connection.
        ticket: u32,
    },
}

/// The size of a prefix in [`NetworkRequest::Capture`].
pub const PREFIX_LEN: usize = 17;

impl NetworkRequest<'_> {
    pub(crate) const fn recovery(&self) -> Recovery {
        match self {
            // The agent resets the connections that it knows of.
            Self::Capture { .. } | Self::Accept { .. } => Recovery::Fail,
        }
    }

    pub(crate) const fn outputs(&self, window: u32) -> Outputs {
        match self {
            Self::Capture { .. } | Self::Accept { .. } => Outputs::stdout(window),
        }
    }

    pub(crate) const fn start_event(&self) -> StartEvent {
        match self {
            Self::Capture { .. } => StartEvent::None,
            Self::Accept { .. } => StartEvent::Connected,
        }
    }
}

/// What a program in the guest wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Want<'a> {
    /// Connections are taken from now on.
    Ready,
    /// Whether there is a host with this name. The answer is [`Answer::Allow`] or
    /// [`Answer::Refuse`].
    Lookup {
        /// The number of the question.
        ticket: u32,
        /// The name, without a dot at its end, in small letters.
        name: &'a str,
    },
    /// A connection. The host [accepts](NetworkRequest::Accept) it, or the answer is
    /// [`Answer::Refuse`].
    Connect {
        /// The number of the connection.
        ticket: u32,
        /// What it is to.
        #[serde(borrow)]
        target: Target<'a>,
        /// The port.
        port: u16,
    },
}

impl Want<'_> {
    /// Returns whether all fields are within their limits.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        match self {
            Self::Lookup { name, .. }
            | Self::Connect {
                target: Target::Name(name),
                ..
            } => name.len() <= MAX_HOST_NAME,
            Self::Ready | Self::Connect { .. } => true,
        }
    }
}

/// What a program wants to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Target<'a> {
    /// A name that it has looked up.
    Name(&'a str),
    /// An IPv4 address.
    V4([u8; 4]),
    /// An IPv6 address.
    V6([u8; 16]),
}

/// The host's answer to a [`Want`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Answer {
    /// The name may be connected to on some port: the program gets an address for it.
    Allow {
        /// The number of the question.
        ticket: u32,
    },
    /// There is no such name for the program, or its connection is reset.
    Refuse {
        /// The number of the question or of the connection.
        ticket: u32,
        /// Why.
        refusal: Refusal,
    },
}

/// Why the host refuses what a program wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// The policy does not allow it. The agent reports it on the console.
    NotAllowed,
    /// It cannot be reached.
    Unreachable,
    /// There are too many connections.
    Limit,
}
