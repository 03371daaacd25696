use serde::{Deserialize, Serialize};

use crate::packed::Packed;

/// Something that tells whether a service does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Probe<'a> {
    /// Whether there is something with this absolute path.
    File {
        /// The path.
        path: &'a [u8],
    },
    /// Whether the guest's loopback takes connections on this port.
    Tcp {
        /// The port.
        port: u16,
    },
    /// Whether the socket with this absolute path takes connections.
    Unix {
        /// The path.
        path: &'a [u8],
    },
    /// Whether a web server on the guest's loopback answers.
    #[serde(borrow)]
    Http(Http<'a>),
    /// Whether this program exits with 0. It runs where and as whom the service
    /// does.
    Command {
        /// The program and its arguments.
        #[serde(borrow)]
        argv: Packed<'a>,
    },
    /// Whether a line of the log of this run matches a regular expression,
    /// which knows bytes and not characters.
    Log {
        /// The regular expression.
        pattern: &'a str,
    },
}

/// Asks a web server for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http<'a> {
    /// The port of the server.
    pub port: u16,
    /// The page: `/` and what follows.
    pub path: &'a str,
    /// The smallest status that is a success.
    pub min_status: u16,
    /// The largest one.
    pub max_status: u16,
    /// What must be somewhere in the first 64 KiB of the body; anything if
    /// empty.
    pub body: &'a [u8],
}

/// How a service that was started becomes a ready one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready<'a> {
    /// What tells it.
    #[serde(borrow)]
    pub probe: Probe<'a>,
    /// Nothing is asked before this time has passed since the start.
    pub delay_ms: u32,
    /// From one attempt to the next.
    pub interval_ms: u32,
    /// How long one attempt may take.
    pub attempt_ms: u32,
    /// When it must be ready, from the start on.
    pub timeout_ms: u32,
}

/// How a ready service is found to work no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive<'a> {
    /// What tells it; not a [`Probe::Log`].
    #[serde(borrow)]
    pub probe: Probe<'a>,
    /// From one attempt to the next.
    pub interval_ms: u32,
    /// How long one attempt may take.
    pub attempt_ms: u32,
    /// So many failures in a row are the end of this run; at least one.
    pub failures: u32,
}
