//! A conversation with an agent, shared by many streams.
//!
//! ```text
//!  Stream ──> Outgoing ──> writer ──> link
//!  Stream <── StreamState <── reader <── link
//!                 Table: id -> StreamState
//! ```
//!
//! The supervisor task reads and writes. When the link breaks it begins a new one
//! and opens every stream on it again, each in the way that its [`Recovery`]
//! knows: a process goes on at the byte where it was.
//!
//! The reader is the only one that adds to a stream's state, the stream's
//! handles the only ones that take from it. What a guest can make the host hold
//! is bounded by the windows of the streams that the host itself opened.
//!
//! Locks: a stream's state before the queue of what goes out. Nobody holds two
//! states.

mod address;
mod event;
mod inbox;
mod link;
mod outbox;
mod outgoing;
mod reader;
mod recovery;
mod relay;
mod route;
mod service_state;
mod state;
mod stream;
mod supervisor;
mod table;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt, io, sync::Arc};

use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};
use vmcell_wire::{Capabilities, Request, WireError, encode};

use outgoing::{Epoch, Outgoing};
use recovery::Recovery;
use state::StreamState;
use supervisor::LinkSupervisor;
use table::StreamTable;

pub(crate) use address::{Address, ConnectError};
#[cfg(feature = "terminal")]
pub(crate) use event::TerminalSnapshot;
pub(crate) use event::{Closing, Failed, LeftProcesses, ListedProcess, StreamEvent};
pub(crate) use link::Link;
pub(crate) use relay::relay;
pub(crate) use route::Route;
pub(crate) use service_state::{ServiceFailureReason, ServicePhase, ServiceState};
pub(crate) use stream::{Stream, StreamInput, StreamOutput};

/// How many bytes a guest may send on a channel before the host has read them.
pub(crate) const WINDOW: u32 = 1024 * 1024;

/// More than this of control frames waits only if the guest does not read.
const MAX_UNSENT_CONTROL: usize = 1024 * 1024;

/// What the host calls itself.
const BUILD: &str = concat!("vmcell ", env!("CARGO_PKG_VERSION"));

/// A conversation with an agent. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    peer: PeerInfo,
    /// It ends with the session.
    _supervisor: AbortOnDrop,
}

struct Shared {
    table: StreamTable,
    outgoing: Outgoing,
    link_error: watch::Sender<Option<LinkError>>,
    /// Somebody wants a new link.
    drop_link: Notify,
    /// The guest does not read.
    peer_not_reading: Notify,
    /// How much standard input a new process may be sent.
    input_window: u32,
}

/// What waits to be sent may be secrets: environments, inputs, passwords.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// What an agent said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerInfo {
    pub(crate) build: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) boot_id: [u8; 16],
    pub(crate) window: u32,
}

/// Why a link is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// The other end closed it.
    Closed,
    /// The host's system failed.
    Io(io::ErrorKind),
    /// There is no way to the agent.
    Connect(ConnectError),
    /// The guest does not keep the protocol.
    Violation(WireError),
    /// The agent belongs to another boot than this one.
    WrongBoot,
    /// The guest sends, but does not read what it is sent.
    PeerNotReading,
    /// The caller wanted a new one.
    Dropped,
}

/// Why a stream could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The link is lost.
    Link(LinkError),
    /// The request does not fit in a frame.
    TooLarge,
    /// Too many streams are open.
    Full,
    /// The agent lacks this.
    Unsupported(Capabilities),
}

impl Session {
    /// Says hello and waits for the agent's answer. Who does not know the boot
    /// learns it.
    pub(crate) async fn connect(
        mut link: Link,
        boot_id: Option<[u8; 16]>,
    ) -> Result<Self, LinkError> {
        let (reader, peer) = link.exchange_hellos(boot_id.unwrap_or_default()).await?;
        if boot_id.is_some_and(|boot_id| boot_id != peer.boot_id) {
            return Err(LinkError::WrongBoot);
        }
        let (link_error, _) = watch::channel(None);
        let shared = Arc::new(Shared {
            table: StreamTable::default(),
            outgoing: Outgoing::default(),
            link_error,
            drop_link: Notify::new(),
            peer_not_reading: Notify::new(),
            input_window: peer.window,
        });
        let supervisor = LinkSupervisor {
            link,
            reader,
            peer: peer.clone(),
            shared: shared.clone(),
        };
        let supervisor = tokio::spawn(supervisor.run());
        Ok(Self {
            shared,
            peer,
            _supervisor: AbortOnDrop(supervisor.abort_handle()),
        })
    }

    /// Drops the link and makes a new one. What was on its way is lost, and the
    /// streams go on where they were.
    pub(crate) fn drop_link(&self) {
        self.shared.drop_link.notify_one();
    }

    pub(crate) fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// Opens a stream with a request.
    pub(crate) fn open(&self, request: &Request<'_>) -> Result<Stream, OpenError> {
        if let Some(error) = *self.shared.link_error.borrow() {
            return Err(OpenError::Link(error));
        }
        if !self.peer.capabilities.contains(request.capability()) {
            return Err(OpenError::Unsupported(request.capability()));
        }
        let mut frame = Vec::new();
        let mut opened = Ok(());
        // The stream must be known before the agent can answer.
        let (id, state) = self.shared.table.insert(|id| {
            encode::open(&mut frame, id, request).map_err(|_| OpenError::TooLarge)?;
            let recovery = Recovery::of(request, frame.clone());
            Ok(Arc::new(StreamState::new(id, recovery, self.peer.window)))
        })?;
        let stream = Stream {
            id,
            state,
            shared: self.shared.clone(),
        };
        // The link may have been lost between our look and now; then nobody
        // will tell this stream.
        if let Some(error) = *self.shared.link_error.borrow() {
            opened = Err(OpenError::Link(error));
        }
        if opened.is_ok() && stream.state.open(&self.shared, &frame).is_err() {
            opened = Err(OpenError::TooLarge);
        }
        match opened {
            Ok(()) => Ok(stream),
            Err(error) => {
                stream.withdraw();
                Err(error)
            }
        }
    }

    /// Tells when the link is lost, and why.
    pub(crate) fn link_error(&self) -> watch::Receiver<Option<LinkError>> {
        self.shared.link_error.subscribe()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.fail(LinkError::Closed);
    }
}

impl Shared {
    /// Adds a frame of a fixed size, which always fits.
    fn control(&self, epoch: Epoch, write: impl FnOnce(&mut Vec<u8>)) {
        let _ = self.outgoing.control(epoch, |out| {
            write(out);
            Ok(())
        });
        // Credit for what a guest sends is the one thing that it can make us
        // queue without end.
        if self.outgoing.unsent_control() > MAX_UNSENT_CONTROL {
            self.peer_not_reading.notify_one();
        }
    }

    /// The link is lost: everybody who waits for it is told.
    fn fail(&self, error: LinkError) {
        self.link_error.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(error);
            first
        });
        let error = self.link_error.borrow().unwrap_or(error);
        self.table.fail_all(error);
    }
}

impl From<WireError> for LinkError {
    fn from(error: WireError) -> Self {
        Self::Violation(error)
    }
}

impl From<ConnectError> for LinkError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            kind => Self::Io(kind),
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it was closed"),
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Connect(error) => write!(f, "{error}"),
            Self::Violation(error) => write!(f, "{error}"),
            Self::WrongBoot => f.write_str("the agent belongs to another boot"),
            Self::PeerNotReading => f.write_str("the guest does not read what it is sent"),
            Self::Dropped => f.write_str("it broke while the request was under way"),
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
