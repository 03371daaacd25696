use serde::{Deserialize, Serialize};

use super::log_pattern::LogPattern;
use crate::packed::PackedStrings;

/// A check whether a service works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Probe<'a> {
    /// Succeeds if this absolute path exists.
    File {
        /// The path.
        path: &'a [u8],
    },
    /// Succeeds if this port on the guest's loopback accepts connections.
    Tcp {
        /// The port.
        port: u16,
    },
    /// Succeeds if the socket at this absolute path accepts connections.
    Unix {
        /// The path.
        path: &'a [u8],
    },
    /// Succeeds if an HTTP server on the guest's loopback responds as expected.
    #[serde(borrow)]
    Http(Http<'a>),
    /// Succeeds if this program exits with 0. It runs in the working directory
    /// and as the user of the service.
    Command {
        /// The program and its arguments.
        #[serde(borrow)]
        argv: PackedStrings<'a>,
    },
    /// Succeeds if a line of the log of this run matches.
    Log {
        /// The compiled pattern.
        #[serde(borrow)]
        pattern: LogPattern<'a>,
    },
}

/// The parameters of an HTTP probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http<'a> {
    /// The port of the server.
    pub port: u16,
    /// The path of the request, beginning with `/`.
    pub path: &'a str,
    /// The smallest status code that is a success.
    pub min_status: u16,
    /// The largest one.
    pub max_status: u16,
    /// Bytes that must occur in the first 64 KiB of the body; any body if empty.
    pub body: &'a [u8],
}

/// The readiness probe of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessProbe<'a> {
    /// The probe.
    #[serde(borrow)]
    pub probe: Probe<'a>,
    /// The time from the start to the first attempt.
    pub delay_ms: u32,
    /// The time from one attempt to the next.
    pub interval_ms: u32,
    /// The timeout of one attempt.
    pub attempt_ms: u32,
    /// The time from the start by which it must be ready.
    pub timeout_ms: u32,
}

/// The liveness probe of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivenessProbe<'a> {
    /// The probe; not a [`Probe::Log`].
    #[serde(borrow)]
    pub probe: Probe<'a>,
    /// The time from one attempt to the next.
    pub interval_ms: u32,
    /// The timeout of one attempt.
    pub attempt_ms: u32,
    /// The number of consecutive failures that end this run; at least one.
    pub failures: u32,
}
