//! Events that wake the agent, and the epoll instance that delivers them.

use alloc::vec::Vec;
use core::cell::RefCell;

use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    process::Pid,
};
use vmcell_wire::Channel;

use crate::{
    child_exit::ChildExit,
    children::{Children, Reaping},
    clock::Moment,
    ids::{ConnectionId, LinkId, ProcessId, ServiceId},
};

/// An event that wakes the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A child of the agent with this pid has ended.
    Child(u32),
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
    /// The cgroup of all processes may be frozen now.
    Freezer,
    /// A socket by which programs reach other machines is ready.
    Network(NetworkSocket, Readiness),
}

/// A socket by which programs reach other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkSocket {
    /// Programs connect.
    Listener,
    /// Programs ask for names.
    Datagrams,
    /// A connection that waits for the host's decision was reset.
    Waiting(u32),
    /// A program asks for names over a connection.
    Client(u32),
}

impl Event {
    /// Returns the event encoded as the 64 bits of epoll user data.
    fn token(self) -> u64 {
        let (kind, detail, id) = match self {
            Self::Child(pid) => (1, 0, pid),
            Self::Listener => (2, 0, 0),
            Self::Link(LinkId(id)) => (3, 0, id),
            Self::Pipe(ProcessId(id), channel) => (4, channel_number(channel), id),
            Self::Worker(id) => (5, 0, id),
            Self::Connection(ConnectionId(id), _) => (6, 0, id),
            Self::Log(ServiceId(id)) => (7, 0, id),
            Self::Probe(ServiceId(id)) => (8, 0, id),
            Self::Launch(ProcessId(id)) => (9, 0, id),
            Self::Freezer => (10, 0, 0),
            Self::Network(NetworkSocket::Listener, _) => (11, 0, 0),
            Self::Network(NetworkSocket::Datagrams, _) => (11, 1, 0),
            Self::Network(NetworkSocket::Waiting(ticket), _) => (11, 2, ticket),
            Self::Network(NetworkSocket::Client(id), _) => (11, 3, id),
        };
        let [a, b, c, d] = u32::to_le_bytes(id);
        u64::from_le_bytes([a, b, c, d, detail, 0, 0, kind])
    }

    fn from_token(token: u64, flags: EventFlags) -> Option<Self> {
        let [a, b, c, d, detail, _, _, kind] = token.to_le_bytes();
        let id = u32::from_le_bytes([a, b, c, d]);
        match (kind, detail) {
            (1, _) => Some(Self::Child(id)),
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
            (10, _) => Some(Self::Freezer),
            (11, detail) => {
                let socket = match detail {
                    0 => NetworkSocket::Listener,
                    1 => NetworkSocket::Datagrams,
                    2 => NetworkSocket::Waiting(id),
                    _ => NetworkSocket::Client(id),
                };
                Some(Self::Network(socket, Readiness(flags)))
            }
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

    /// A socket that can be read and written.
    #[cfg(feature = "fuzzing")]
    pub(crate) const BOTH: Self = Self(EventFlags::IN.union(EventFlags::OUT));

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

/// Returns what to watch a descriptor for.
fn interest(event: Event) -> EventFlags {
    match event {
        Event::Child(_) | Event::Listener | Event::Link(_) | Event::Worker(_) => EventFlags::IN,
        Event::Pipe(_, Channel::Stdin) => EventFlags::OUT,
        Event::Connection(..) => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP,
        Event::Pipe(_, Channel::Stdout | Channel::Stderr) => EventFlags::IN,
        Event::Log(_) | Event::Probe(_) | Event::Launch(_) => EventFlags::IN,
        // A file of a cgroup is always readable: cgroups(7).
        Event::Freezer => EventFlags::PRI,
        Event::Network(NetworkSocket::Listener | NetworkSocket::Datagrams, _) => EventFlags::IN,
        // Errors are always reported.
        Event::Network(NetworkSocket::Waiting(_), _) => EventFlags::empty(),
        Event::Network(NetworkSocket::Client(_), _) => {
            EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP
        }
    }
}

fn channel_number(channel: Channel) -> u8 {
    match channel {
        Channel::Stdin => 0,
        Channel::Stdout => 1,
        Channel::Stderr => 2,
    }
}

/// The epoll instance, and the children whose ends it reports.
///
/// Everything is watched edge-triggered: the receiver of an event remembers
/// that its descriptor is ready until a call returns `EAGAIN`. So a descriptor
/// that may not be used now (no room, no credit) costs nothing. Interest
/// changes in one case only: a link or a terminal is watched for writability
/// while its last write would have blocked.
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Borrowed only within methods of this type, none of which calls another.
    children: RefCell<Children>,
}

impl Poller {
    pub(crate) fn new(reaping: Reaping) -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            children: RefCell::new(Children::new(reaping)),
        })
    }

    pub(crate) fn watch(&self, descriptor: impl AsFd, event: Event) -> Result<(), Errno> {
        let interest = interest(event);
        epoll::add(
            &self.epoll,
            descriptor,
            EventData::new_u64(event.token()),
            interest | EventFlags::ET,
        )
    }

    /// Watches a descriptor for another event than before.
    pub(crate) fn watch_instead(&self, descriptor: impl AsFd, event: Event) -> Result<(), Errno> {
        let data = EventData::new_u64(event.token());
        let interest = interest(event) | EventFlags::ET;
        epoll::modify(&self.epoll, descriptor, data, interest)
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
        epoll::modify(&self.epoll, descriptor, data, interest)
    }

    /// Registers a terminal's input without any interest. A terminal would
    /// report itself writable after every key, so events are requested one at a
    /// time with [`watch_writable_once`](Self::watch_writable_once).
    pub(crate) fn register_terminal_input(
        &self,
        descriptor: impl AsFd,
        event: Event,
    ) -> Result<(), Errno> {
        let data = EventData::new_u64(event.token());
        epoll::add(&self.epoll, descriptor, data, EventFlags::ONESHOT)
    }

    /// Requests one event when a terminal's input is writable again.
    pub(crate) fn watch_writable_once(
        &self,
        descriptor: impl AsFd,
        event: Event,
    ) -> Result<(), Errno> {
        let data = EventData::new_u64(event.token());
        let interest = EventFlags::OUT | EventFlags::ONESHOT;
        epoll::modify(&self.epoll, descriptor, data, interest)
    }

    /// Fills `batch` with the events that have arrived.
    pub(crate) fn poll(&self, batch: &mut Batch) -> Result<(), Errno> {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        batch.0.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut batch.0), Some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Adds a child that was just started.
    pub(crate) fn add_child(&self, pid: Pid) {
        let mut children = self.children.borrow_mut();
        children.add(pid, &|pid, handle| self.watch_child(pid, handle));
    }

    fn watch_child(&self, pid: Pid, handle: &OwnedFd) -> Result<(), Errno> {
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        self.watch(handle, Event::Child(pid))
    }

    /// Removes a child that was reaped. Returns whether it was the agent's.
    pub(crate) fn remove_child(&self, pid: Pid) -> bool {
        self.children.borrow_mut().remove(pid)
    }

    /// Reaps a child of the agent, if it has ended.
    pub(crate) fn reap_child(&self, pid: Pid) -> Result<Option<ChildExit>, Errno> {
        self.children.borrow().reap(pid)
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.borrow().is_empty()
    }

    /// Kills all children of the agent.
    pub(crate) fn kill_children(&self) {
        self.children.borrow().kill();
    }

    /// Watches the children that could not be watched before. Returns those that
    /// another part of the program has reaped meanwhile.
    pub(crate) fn retry_children(&self) -> Vec<Pid> {
        let mut children = self.children.borrow_mut();
        children.retry(&|pid, handle| self.watch_child(pid, handle))
    }

    /// Returns when [`retry_children`](Self::retry_children) must be called.
    pub(crate) fn next_retry(&self) -> Option<Moment> {
        self.children.borrow().retry_at()
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// The events of one poll.
#[derive(Default)]
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
