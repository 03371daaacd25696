//! One link to an agent, shared by many streams.
//!
//! ```text
//!  Stream ──> Outgoing ──> writer task ──> link
//!  Stream <── StreamState <── reader task <── link
//!                 Table: id -> StreamState
//! ```
//!
//! The reader task is the only one that adds to a stream's state, the stream's
//! handle the only one that takes from it. What a guest can make the host hold
//! is bounded by the windows of the streams that the host itself opened.

mod inbox;
mod outgoing;
mod reader;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt, io, sync::Arc};

use tokio::{net::UnixStream, sync::watch, task::AbortHandle};
use vmcell_wire::{Capabilities, Hello, Request, WireError, encode};

use outgoing::Outgoing;
use reader::Reader;
use table::Table;

pub(crate) use stream::{Closing, Stream, StreamEvent, StreamInput};

/// How many bytes a guest may send on a channel before the host has read them.
const WINDOW: u32 = 1024 * 1024;

/// More than this of control frames waits only if the guest does not read.
const MAX_UNSENT_CONTROL: usize = 1024 * 1024;

/// What the host calls itself.
const BUILD: &str = concat!("vmcell ", env!("CARGO_PKG_VERSION"));

/// A conversation with an agent. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    peer: PeerInfo,
    /// They end with the session.
    _tasks: [AbortOnDrop; 2],
}

#[derive(Debug)]
struct Shared {
    table: Table,
    outgoing: Outgoing,
    lost: watch::Sender<Option<Lost>>,
}

/// What an agent said of itself.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    pub(crate) build: String,
    capabilities: Capabilities,
    boot_id: [u8; 16],
    window: u32,
}

/// Why a link is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The other end closed it.
    Closed,
    /// The host's system failed.
    Io(io::ErrorKind),
    /// The guest does not keep the protocol.
    Violation(WireError),
    /// The agent belongs to another boot than this one.
    WrongBoot,
    /// The guest sends, but does not read what it is sent.
    Deaf,
}

/// Why a stream could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The link is lost.
    Lost(Lost),
    /// The request does not fit in a frame.
    TooLarge,
    /// Too many streams are open.
    Full,
    /// The agent is too old for the request.
    Unsupported,
}

impl Session {
    /// Says hello and waits for the agent's answer.
    pub(crate) async fn connect(link: UnixStream, boot_id: [u8; 16]) -> Result<Self, Lost> {
        let (read_half, write_half) = link.into_split();
        let outgoing = Outgoing::default();
        outgoing
            .control(|out| encode::hello(out, &Hello::new(BUILD, WINDOW, boot_id)))
            .map_err(Lost::Violation)?;
        let (lost, _) = watch::channel(None);
        let shared = Arc::new(Shared {
            table: Table::default(),
            outgoing,
            lost,
        });
        let writer = tokio::spawn(writer::run(write_half, shared.clone()));
        let writer = AbortOnDrop(writer.abort_handle());
        let mut reader = Reader::new(read_half);
        let peer = reader.hello().await?;
        if peer.boot_id != boot_id {
            return Err(Lost::WrongBoot);
        }
        let reader = tokio::spawn(reader.run(shared.clone()));
        Ok(Self {
            shared,
            peer,
            _tasks: [AbortOnDrop(reader.abort_handle()), writer],
        })
    }

    pub(crate) fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// Opens a stream with a request.
    pub(crate) fn open(&self, request: &Request<'_>) -> Result<Stream, OpenError> {
        if let Some(lost) = *self.shared.lost.borrow() {
            return Err(OpenError::Lost(lost));
        }
        if !self.peer.capabilities.contains(request.capability()) {
            return Err(OpenError::Unsupported);
        }
        // The stream must be known before the agent can answer.
        let stream = Stream::register(self.shared.clone(), self.peer.window)?;
        let queued = self
            .shared
            .outgoing
            .control(|out| encode::open(out, stream.id(), request));
        if queued.is_err() {
            stream.withdraw();
            return Err(OpenError::TooLarge);
        }
        Ok(stream)
    }

    /// Tells when the link is lost, and why.
    pub(crate) fn lost(&self) -> watch::Receiver<Option<Lost>> {
        self.shared.lost.subscribe()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.fail(Lost::Closed);
    }
}

impl Shared {
    /// Adds a frame of a fixed size, which always fits.
    fn control(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let _ = self.outgoing.control(|out| {
            write(out);
            Ok(())
        });
        // Credit for what a guest sends is the one thing that it can make us
        // queue without end.
        if self.outgoing.unsent_control() > MAX_UNSENT_CONTROL {
            self.fail(Lost::Deaf);
        }
    }

    /// The link is lost: everybody who waits for it is told.
    fn fail(&self, lost: Lost) {
        self.lost.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(lost);
            first
        });
        let lost = self.lost.borrow().unwrap_or(lost);
        self.table.fail_all(lost);
    }
}

impl From<WireError> for Lost {
    fn from(error: WireError) -> Self {
        Self::Violation(error)
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            kind => Self::Io(kind),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it was closed"),
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Violation(error) => write!(f, "{error}"),
            Self::WrongBoot => f.write_str("the agent belongs to another boot"),
            Self::Deaf => f.write_str("the guest does not read what it is sent"),
        }
    }
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
