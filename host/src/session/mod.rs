//! A session with an agent: one link, shared by many streams.
//!
//! ```text
//!  Stream ──> Outgoing ──> writer ──> link
//!  Stream <── StreamState <── reader <── link
//!                 Table: id -> StreamState
//! ```
//!
//! The supervisor task reads and writes. When the link breaks, it makes a new
//! one and reopens every stream on it as the
//! [`Recovery`](vmcell_wire::Recovery) of its request says: the output of a
//! process continues at the byte where it broke off.
//!
//! Only the reader adds to a stream's state, and only the stream's handles take
//! from it. The windows of the streams that the host opened bound how many bytes
//! a guest can make the host hold.
//!
//! Lock order: a stream's state before the outgoing queue. No task holds the
//! states of two streams at once.

mod address;
mod event;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod inbox;
mod link;
mod outbox;
mod outgoing;
mod output_mask;
mod pauses;
mod printed_output;
mod rate;
mod reader;
mod relay;
mod reopening;
mod route;
mod state;
mod stream;
mod supervisor;
mod table;
#[cfg(test)]
mod tests;
mod traffic;
mod writer;

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    sync::{Mutex, MutexGuard, Notify, watch},
    task::AbortHandle,
};
use vmcell_wire::{Capabilities, Renew, Request, WireError, encode};

use crate::secret::{GrantedSecrets, TooManySecrets, secrets_of};

use outgoing::{Epoch, Outgoing};
use printed_output::{first_bytes, read_earlier};
use rate::LinkRate;
use reader::Reader;
use state::StreamState;
use stream::HoldTimer;
use supervisor::LinkSupervisor;
use table::StreamTable;

pub(crate) use address::{Address, ConnectError};
pub(crate) use event::{Closing, StreamEvent};
pub(crate) use link::Link;
pub(crate) use pauses::Pauses;
pub(crate) use relay::relay;
pub(crate) use route::Route;
pub(crate) use stream::{Stream, StreamInput, StreamOutput};
pub(crate) use traffic::LinkTraffic;

/// How many unread bytes a guest may send on a channel.
pub(crate) const WINDOW: u32 = 1024 * 1024;

/// The limit of unsent bytes of control frames. More wait only if the guest does
/// not read.
const MAX_UNSENT_CONTROL: usize = 1024 * 1024;

/// The name of the host's build, for its hello.
const BUILD: &str = concat!("vmcell ", env!("CARGO_PKG_VERSION"));

/// A session with an agent. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    peer: PeerInfo,
    /// Whether the link is a connection that can be made again.
    is_dialled: bool,
    /// Aborts the task with the session.
    _supervisor: AbortOnDrop,
}

struct Shared {
    table: StreamTable,
    outgoing: Outgoing,
    link_error: watch::Sender<Option<LinkError>>,
    /// Requests a new link.
    drop_link: Notify,
    /// How many links have ended whose streams are open on the next one.
    ended_links: watch::Sender<u64>,
    /// Reports that the guest does not read.
    peer_not_reading: Notify,
    /// How many bytes of standard input may be sent to a new process at first.
    input_window: u32,
    pauses: Pauses,
    /// Whether requests are refused while the VM is paused. Otherwise they wait.
    refuses_while_paused: AtomicBool,
    /// How many bytes were read from its links.
    received_bytes: AtomicU64,
    /// How fast they may be read.
    receive_rate: LinkRate,
    /// The traffic of those who only look at the VM.
    unnoticed: Mutex<LinkTraffic>,
    secrets: GrantedSecrets,
}

/// Prints no contents: unsent bytes may be secrets, such as environments, input
/// and passwords.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// What an agent's hello says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerInfo {
    pub(crate) build: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) boot_id: [u8; 16],
    pub(crate) window: u32,
}

/// Why a link failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// The other end closed it.
    Closed,
    /// A system call of the host failed.
    Io(io::ErrorKind),
    /// No connection to the agent could be made.
    Connect(ConnectError),
    /// The guest violated the protocol.
    Violation(WireError),
    /// The agent belongs to another boot.
    WrongBoot,
    /// The agent of a restored VM could not take its new identity.
    NotRenewed,
    /// The guest does not read, or does not answer a hello in time.
    PeerNotReading,
    /// The caller requested a new link.
    Dropped,
}

/// Why a stream could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The link has failed.
    Link(LinkError),
    /// The request does not fit in a frame.
    TooLarge,
    /// Too many streams are open.
    Full,
    /// The agent lacks this capability.
    Unsupported(Capabilities),
    /// The VM is paused, and requests are refused meanwhile.
    Paused,
    /// The programs of the VM have got too many secrets.
    TooManySecrets,
}

impl Session {
    /// Exchanges hellos with the agent. Accepts any boot if `boot_id` is `None`.
    pub(crate) async fn connect(
        mut link: Link,
        boot_id: Option<[u8; 16]>,
    ) -> Result<Self, LinkError> {
        let (reader, peer) = link.exchange_hellos(boot_id.unwrap_or_default()).await?;
        if boot_id.is_some_and(|boot_id| boot_id != peer.boot_id) {
            return Err(LinkError::WrongBoot);
        }
        Ok(Self::start(link, reader, peer))
    }

    /// Exchanges hellos with the agent of a VM that was just restored, whose boot id is
    /// still this one, and gives it a new identity before all else.
    pub(crate) async fn restore(
        mut link: Link,
        boot_id: [u8; 16],
        renew: &Renew<'_>,
    ) -> Result<Self, LinkError> {
        let (reader, peer) = link.renew(boot_id, renew).await?;
        Ok(Self::start(link, reader, peer))
    }

    fn start(link: Link, reader: Reader, peer: PeerInfo) -> Self {
        let (link_error, _) = watch::channel(None);
        let shared = Arc::new(Shared {
            table: StreamTable::default(),
            outgoing: Outgoing::default(),
            link_error,
            drop_link: Notify::new(),
            ended_links: watch::channel(0).0,
            peer_not_reading: Notify::new(),
            input_window: peer.window,
            pauses: Pauses::default(),
            refuses_while_paused: AtomicBool::new(false),
            received_bytes: AtomicU64::new(0),
            receive_rate: LinkRate::default(),
            unnoticed: Mutex::default(),
            secrets: GrantedSecrets::default(),
        });
        let is_dialled = link.is_dialled();
        let supervisor = LinkSupervisor {
            link,
            reader,
            peer: peer.clone(),
            shared: shared.clone(),
        };
        let supervisor = tokio::spawn(supervisor.run());
        Self {
            shared,
            peer,
            is_dialled,
            _supervisor: AbortOnDrop(supervisor.abort_handle()),
        }
    }

    /// Drops the link and makes a new one. Bytes in flight are lost; the streams
    /// are reopened as the [`Recovery`](vmcell_wire::Recovery) of their requests
    /// says.
    pub(crate) fn drop_link(&self) {
        self.shared.drop_link.notify_one();
    }

    /// Replaces the link of a VM that was saved and runs again, if the link is a
    /// connection: the guest has forgotten it, or will. Requests are still held back
    /// afterwards.
    pub(crate) async fn replace_connection(&self) {
        if !self.is_dialled {
            return;
        }
        let mut ended_links = self.shared.ended_links.subscribe();
        let mut link_error = self.link_error();
        // No link is made while the VM is paused.
        self.shared.pauses.end();
        self.drop_link();
        tokio::select! {
            _ = ended_links.changed() => {}
            _ = link_error.wait_for(Option::is_some) => {}
        }
    }

    /// Limits how many bytes per second its links carry, in each direction.
    pub(crate) fn limit_rate(&self, bytes_per_second: u64) {
        self.shared.receive_rate.set(bytes_per_second);
        self.shared.outgoing.rate().set(bytes_per_second);
    }

    /// Limits it no longer: the VM is about to end, and its last words must not be late.
    pub(crate) fn lift_rate(&self) {
        self.shared.receive_rate.lift();
        self.shared.outgoing.rate().lift();
    }

    pub(crate) fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// Returns how many bytes were received and sent on its links, after their hellos.
    pub(crate) fn traffic(&self) -> LinkTraffic {
        LinkTraffic {
            received: self.shared.received_bytes.load(Ordering::Relaxed),
            sent: self.shared.outgoing.written_bytes(),
        }
    }

    /// Returns how much of the [traffic](Self::traffic) shows that somebody uses the VM.
    /// `None` as long as somebody looks at it.
    pub(crate) fn noticed_traffic(&self) -> Option<LinkTraffic> {
        let unnoticed = self.shared.unnoticed.try_lock().ok()?;
        Some(self.traffic() - *unnoticed)
    }

    /// Carries out something that does not count as a use of the VM, after all others who
    /// do so.
    ///
    /// Cancel safe if `doing` is: the traffic until then does not count.
    pub(crate) async fn unnoticed<T>(&self, doing: impl Future<Output = T>) -> T {
        let unnoticed = self.shared.unnoticed.lock().await;
        let _until_drop = UnnoticedTraffic {
            session: self,
            unnoticed,
            before: self.traffic(),
        };
        doing.await
    }

    /// Returns whether the VM is paused, and for how long it was.
    pub(crate) fn pauses(&self) -> &Pauses {
        &self.shared.pauses
    }

    /// Holds back all requests from now on, or refuses them: the VM is about to be
    /// paused.
    pub(crate) fn pause(&self, refuse_requests: bool) {
        let refuses = &self.shared.refuses_while_paused;
        refuses.store(refuse_requests, Ordering::Relaxed);
        self.shared.pauses.begin();
        self.shared.outgoing.hold();
    }

    /// Sends the requests that were held back: the VM runs.
    pub(crate) fn resume(&self) {
        self.shared.pauses.end();
        self.shared.outgoing.release();
    }

    /// Opens a stream with a request that precedes those that are held back.
    pub(crate) fn open_first(&self, request: &Request<'_>) -> Result<Stream, OpenError> {
        self.open_with(request, |epoch, frame| {
            self.shared.outgoing.overtake(epoch, frame);
            Ok(())
        })
    }

    /// Opens a stream with a request.
    pub(crate) fn open(&self, request: &Request<'_>) -> Result<Stream, OpenError> {
        let refuses = &self.shared.refuses_while_paused;
        if self.shared.pauses.is_paused() && refuses.load(Ordering::Relaxed) {
            return Err(OpenError::Paused);
        }
        self.open_with(request, |epoch, frame| {
            self.shared.outgoing.request(epoch, |out| {
                out.extend_from_slice(&frame);
                Ok(())
            })
        })
    }

    fn open_with(
        &self,
        request: &Request<'_>,
        send: impl FnOnce(Epoch, Vec<u8>) -> Result<(), WireError>,
    ) -> Result<Stream, OpenError> {
        if let Some(error) = *self.shared.link_error.borrow() {
            return Err(OpenError::Link(error));
        }
        if !self.peer.capabilities.contains(request.capability()) {
            return Err(OpenError::Unsupported(request.capability()));
        }
        self.grant_secrets(request)?;
        let secrets = self.shared.secrets.set();
        let earlier = secrets.map_or(0, |secrets| secrets.longest());
        let sent = read_earlier(*request, earlier);
        let first = match sent == *request {
            true => [0; 2],
            false => first_bytes(request),
        };
        let mut frame = Vec::new();
        let mut opened = Ok(());
        // The stream must be in the table before the agent can answer.
        let (id, state) = self.shared.table.insert(|id| {
            encode::open(&mut frame, id, &sent).map_err(|_| OpenError::TooLarge)?;
            let state = StreamState::new(id, request, frame.clone(), self.peer.window, first);
            Ok(Arc::new(state))
        })?;
        let stream = Stream {
            id,
            state,
            shared: self.shared.clone(),
            hold_timer: HoldTimer::default(),
        };
        // If the link failed since the check above, the stream may have missed
        // the error.
        if let Some(error) = *self.shared.link_error.borrow() {
            opened = Err(OpenError::Link(error));
        }
        let sending = |epoch| send(epoch, frame);
        if opened.is_ok() && stream.state.open(&self.shared, sending).is_err() {
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

    /// Returns the secrets that are masked in all that programs print.
    pub(crate) fn secrets(&self) -> &GrantedSecrets {
        &self.shared.secrets
    }

    /// Masks the secrets that a program gets by a request, in all that programs print
    /// from now on.
    fn grant_secrets(&self, request: &Request<'_>) -> Result<(), OpenError> {
        let secrets = secrets_of(request);
        if !secrets.is_empty() && !self.peer.capabilities.contains(Capabilities::SECRETS) {
            return Err(OpenError::Unsupported(Capabilities::SECRETS));
        }
        let granted = self.shared.secrets.grant(secrets);
        granted.map_err(|TooManySecrets| OpenError::TooManySecrets)
    }

    /// Returns a receiver of the error that ends the session.
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
        // Credit for the guest's own bytes is the only thing that a guest can
        // make the host queue without limit.
        if self.outgoing.unsent_control() > MAX_UNSENT_CONTROL {
            self.peer_not_reading.notify_one();
        }
    }

    /// Records the error that ends the session, unless there is one, and fails
    /// all streams with it.
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
            Self::NotRenewed => f.write_str("the guest could not take a new identity"),
            Self::PeerNotReading => f.write_str("the guest does not read what it is sent"),
            Self::Dropped => f.write_str("it broke while the request was under way"),
        }
    }
}

/// Makes the traffic of a session unnoticed until it is dropped.
struct UnnoticedTraffic<'a> {
    session: &'a Session,
    unnoticed: MutexGuard<'a, LinkTraffic>,
    before: LinkTraffic,
}

impl Drop for UnnoticedTraffic<'_> {
    fn drop(&mut self) {
        *self.unnoticed += self.session.traffic() - self.before;
    }
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
