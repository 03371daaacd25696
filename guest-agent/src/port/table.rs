use alloc::vec::Vec;

use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{Failure, FailureKind, Stage, StreamId};

use super::{Connection, ConnectionState};
use crate::{
    event::{Event, Poller, Readiness},
    ids::{Caller, ConnectionId, LinkId},
};

/// All connections.
pub(crate) struct Connections {
    slots: Vec<Option<Slot>>,
    /// Connections whose streams have work.
    ready: Vec<ConnectionId>,
    /// The links of those streams.
    links_to_serve: Vec<LinkId>,
}

struct Slot {
    caller: Caller,
    connection: Connection,
    origin: Origin,
    is_ready: bool,
}

/// Who has begun a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Host,
    Guest,
}

/// The maximum number of connections that hosts begin, so that descriptors remain for
/// other work where the agent cannot raise the limit of 1024. Those that begin in the
/// guest are counted where they are accepted.
const MAX_CONNECTIONS: usize = 480;

impl Connections {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            ready: Vec::new(),
            links_to_serve: Vec::new(),
        }
    }

    /// Begins to connect to a port.
    pub(crate) fn dial(
        &mut self,
        port: u16,
        caller: Caller,
        poller: &Poller,
    ) -> Result<ConnectionId, Failure<'static>> {
        if self.count(Origin::Host) >= MAX_CONNECTIONS {
            let text = "too many connections at once";
            return Err(Failure::new(FailureKind::Limit, Stage::Dial, text));
        }
        let (id, slot) = self.free_slot()?;
        let mut connection = Connection::dial(port).map_err(failure)?;
        connection.advance();
        poller
            .watch(&connection, Event::Connection(id, Readiness::NONE))
            .map_err(failure)?;
        *slot = Some(Slot {
            caller,
            connection,
            origin: Origin::Host,
            is_ready: false,
        });
        Ok(id)
    }

    /// Takes a connection that a program has begun, and that is already watched.
    pub(crate) fn adopt(
        &mut self,
        socket: OwnedFd,
        caller: Caller,
        poller: &Poller,
    ) -> Result<ConnectionId, Failure<'static>> {
        let (id, slot) = self.free_slot()?;
        let connection = Connection::adopt(socket);
        poller
            .watch_instead(&connection, Event::Connection(id, Readiness::NONE))
            .map_err(failure)?;
        *slot = Some(Slot {
            caller,
            connection,
            origin: Origin::Guest,
            is_ready: false,
        });
        Ok(id)
    }

    /// Returns the number of connections that programs have begun.
    pub(crate) fn adopted(&self) -> usize {
        self.count(Origin::Guest)
    }

    fn count(&self, origin: Origin) -> usize {
        let slots = self.slots.iter().flatten();
        slots.filter(|slot| slot.origin == origin).count()
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        Some(&mut self.slot_mut(id)?.as_mut()?.connection)
    }

    /// Handles an epoll event of a connection.
    pub(crate) fn on_connection_ready(
        &mut self,
        id: ConnectionId,
        ready: Readiness,
        poller: &Poller,
    ) {
        let Some(Some(slot)) = self.slot_mut(id) else {
            return;
        };
        let connection = &mut slot.connection;
        let has_news = match connection.state() {
            ConnectionState::Dialling => {
                // Readiness of the old socket means nothing for its
                // replacement.
                let is_another = connection.advance();
                let event = Event::Connection(id, Readiness::NONE);
                if is_another && let Err(error) = poller.watch(&*connection, event) {
                    connection.give_up(error);
                } else if !is_another {
                    connection.on_ready(ready);
                }
                connection.state() != ConnectionState::Dialling
            }
            _ => connection.on_ready(ready),
        };
        if !has_news || slot.is_ready {
            return;
        }
        slot.is_ready = true;
        let link = slot.caller.link;
        self.ready.push(id);
        if !self.links_to_serve.contains(&link) {
            self.links_to_serve.push(link);
        }
    }

    /// Closes a connection after both sides have ended their output.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        if let Some(slot) = self.slot_mut(id) {
            *slot = None;
        }
    }

    /// Abandons a connection: it was cancelled, or its link is gone. Closes it
    /// if the program has received all input and its end, and resets it
    /// otherwise.
    pub(crate) fn abandon(&mut self, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else {
            return;
        };
        connection.flush();
        if connection.input_is_shut_down() {
            self.close(id);
        } else {
            self.reset(id);
        }
    }

    /// Resets a connection.
    pub(crate) fn reset(&mut self, id: ConnectionId) {
        if let Some(slot) = self.slot_mut(id).and_then(Option::take) {
            slot.connection.reset();
        }
    }

    /// Returns a link whose streams have work.
    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        self.links_to_serve.pop()
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        !self.links_to_serve.is_empty()
    }

    /// Calls `wake` for each stream of a link that has work.
    pub(crate) fn wake_streams(&mut self, link: LinkId, mut wake: impl FnMut(StreamId)) {
        let slots = &mut self.slots;
        self.ready.retain(|id| {
            let slot = usize::try_from(id.0).ok();
            let slot = slot.and_then(|slot| slots.get_mut(slot)?.as_mut());
            let Some(slot) = slot else {
                return false;
            };
            if slot.caller.link != link {
                return true;
            }
            slot.is_ready = false;
            wake(slot.caller.stream);
            false
        });
    }

    fn free_slot(&mut self) -> Result<(ConnectionId, &mut Option<Slot>), Failure<'static>> {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.slots.len());
        if free.is_none() {
            self.slots.push(None);
        }
        let id = u32::try_from(slot).map_err(|_| failure(Errno::MFILE))?;
        let slot = self.slots.get_mut(slot);
        Ok((ConnectionId(id), slot.ok_or_else(|| failure(Errno::MFILE))?))
    }

    fn slot_mut(&mut self, id: ConnectionId) -> Option<&mut Option<Slot>> {
        self.slots.get_mut(usize::try_from(id.0).ok()?)
    }
}

/// Returns the failure to report for a connection that was not made or that
/// broke.
pub(crate) fn failure(errno: Errno) -> Failure<'static> {
    let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
    let text = match errno {
        Errno::CONNREFUSED => "no program listens on this port",
        Errno::CONNRESET | Errno::PIPE => "the program reset the connection",
        _ => "the connection cannot be made",
    };
    Failure::from_errno(number, Stage::Dial, text)
}
