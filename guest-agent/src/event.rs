//! Events that wake the agent, and the epoll instance that delivers them.

use alloc::vec::Vec;

use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    fd::{AsFd, OwnedFd},
    io::Errno,
};
use vmcell_wire::Channel;

use crate::{
    clock::Moment,
    ids::{ConnectionId, LinkId, ProcessId, ServiceId},
};

/// An event that wakes the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A child ended, or the agent was asked to terminate.
    Signal,
    /// A host connects.
    Listener,
    /// A link is readable or writable again.
    Link(LinkId),
    /// A pipe of a process is readable or writable again.
    Pipe(ProcessId, Channel),
    /// The `execve` of a new process succeeded or failed.
    Launch(ProcessId),
    /// A worker process has signalled its eventfd.
    Worker(u32),
    /// A connection is readable or writable again, or closed.
    Connection(ConnectionId, Readiness),
    /// A service has written to its log.
    Log(ServiceId),
    /// The child process that probes a service has sent a report.
    Probe(ServiceId),
}

impl Event {
    /// Returns the event encoded as the 64 bits of epoll user data.
    fn token(self) -> u64 {
        let (kind, detail, id) = match self {
            Self::Signal => (1, 0, 0),
            Self::Listener => (2, 0, 0),
            Self::Link(LinkId(id)) => (3, 0, id),
            Self::Pipe(ProcessId(id), channel) => (4, channel_number(channel), id),
            Self::Worker(id) => (5, 0, id),
            Self::Connection(ConnectionId(id), _) => (6, 0, id),
            Self::Log(ServiceId(id)) => (7, 0, id),
            Self::Probe(ServiceId(id)) => (8, 0, id),
            Self::Launch(ProcessId(id)) => (9, 0, id),
        };
        let [a, b, c, d] = u32::to_le_bytes(id);
        u64::from_le_bytes([a, b, c, d, detail, 0, 0, kind])
    }

    fn from_token(token: u64, flags: EventFlags) -> Option<Self> {
        let [a, b, c, d, detail, _, _, kind] = token.to_le_bytes();
        let id = u32::from_le_bytes([a, b, c, d]);
        match (kind, detail) {
            (1, _) => Some(Self::Signal),
            (2, _) => Some(Self::Listener),
            (3, _) => Some(Self::Link(LinkId(id))),
            (4, 0) => Some(Self::Pipe(ProcessId(id), Channel::Stdin)),
            (4, 1) => Some(Self::Pipe(ProcessId(id), Channel::Stdout)),
            (4, _) => Some(Self::Pipe(ProcessId(id), Channel::Stderr)),
            (5, _) => Some(Self::Worker(id)),
            (6, _) => Some(Self::Connection(ConnectionId(id), Readiness(flags))),
            (7, _) => Some(Self::Log(ServiceId(id))),
            (8, _) => Some(Self::Probe(ServiceId(id))),
            (9, _) => Some(Self::Launch(ProcessId(id))),
            _ => None,
        }
    }
}

/// The epoll flags of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readiness(EventFlags);

impl Readiness {
    /// No flags.
    pub(crate) const NONE: Self = Self(EventFlags::empty());

    pub(crate) fn can_read(self) -> bool {
        self.0.intersects(EventFlags::IN) || self.has_hung_up()
    }

    pub(crate) fn can_write(self) -> bool {
        self.0.intersects(EventFlags::OUT) || self.has_failed()
    }

    /// Returns whether the peer has shut down its writing side.
    pub(crate) fn has_hung_up(self) -> bool {
        self.0.intersects(EventFlags::RDHUP) || self.has_failed()
    }

    /// Returns whether the socket has an error or is closed on both sides.
    pub(crate) fn has_failed(self) -> bool {
        self.0.intersects(EventFlags::ERR | EventFlags::HUP)
    }
}

fn channel_number(channel: Channel) -> u8 {
    match channel {
        Channel::Stdin => 0,
        Channel::Stdout => 1,
        Channel::Stderr => 2,
    }
}

/// The epoll instance.
///
/// Everything is watched edge-triggered: the receiver of an event remembers
/// that its descriptor is ready until a call returns `EAGAIN`. So a descriptor
/// that may not be used now (no room, no credit) costs nothing. Interest
/// changes in one case only: a link or a terminal is watched for writability
/// while its last write would have blocked.
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    pub(crate) fn watch(&self, descriptor: impl AsFd, event: Event) -> Result<(), Errno> {
        let interest = match event {
            Event::Signal | Event::Listener | Event::Link(_) | Event::Worker(_) => EventFlags::IN,
            Event::Pipe(_, Channel::Stdin) => EventFlags::OUT,
            Event::Connection(..) => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP,
            Event::Pipe(_, Channel::Stdout | Channel::Stderr) => EventFlags::IN,
            Event::Log(_) | Event::Probe(_) | Event::Launch(_) => EventFlags::IN,
        };
        epoll::add(
            &self.0,
            descriptor,
            EventData::new_u64(event.token()),
            interest | EventFlags::ET,
        )
    }

    /// Starts or stops watching a link for writability.
    pub(crate) fn watch_writes(
        &self,
        descriptor: impl AsFd,
        event: Event,
        watch: bool,
    ) -> Result<(), Errno> {
        let mut interest = EventFlags::IN | EventFlags::ET;
        interest.set(EventFlags::OUT, watch);
        let data = EventData::new_u64(event.token());
        epoll::modify(&self.0, descriptor, data, interest)
    }

    /// Registers a terminal's input without any interest. A terminal would
    /// report itself writable after every key, so events are requested one at a
    /// time with [`watch_room`](Self::watch_room).
    pub(crate) fn watch_keyboard(&self, descriptor: impl AsFd, event: Event) -> Result<(), Errno> {
        let data = EventData::new_u64(event.token());
        epoll::add(&self.0, descriptor, data, EventFlags::ONESHOT)
    }

    /// Requests one event when a terminal's input is writable again.
    pub(crate) fn watch_room(&self, descriptor: impl AsFd, event: Event) -> Result<(), Errno> {
        let data = EventData::new_u64(event.token());
        let interest = EventFlags::OUT | EventFlags::ONESHOT;
        epoll::modify(&self.0, descriptor, data, interest)
    }

    /// Sleeps until an event arrives or `deadline` is reached, and fills
    /// `batch` with the events.
    pub(crate) fn wait(&self, batch: &mut Batch, deadline: Option<Moment>) -> Result<(), Errno> {
        let timeout = deadline.map(|deadline| {
            let wait = deadline.nanoseconds_since(Moment::now());
            timespec(wait.min(LONGEST_WAIT_NS))
        });
        batch.0.clear();
        match epoll::wait(&self.0, spare_capacity(&mut batch.0), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The longest sleep. A deadline may exceed what the kernel accepts, and an
/// early wake-up does no harm.
const LONGEST_WAIT_NS: u64 = 3600 * 1_000_000_000;

/// The events of one wait.
pub(crate) struct Batch(Vec<epoll::Event>);

impl Batch {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(32))
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        self.0
            .iter()
            .filter_map(|record| Event::from_token(record.data.u64(), record.flags))
    }
}

fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(nanoseconds.div_euclid(1_000_000_000)).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}
