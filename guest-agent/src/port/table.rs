use alloc::vec::Vec;

use rustix::io::Errno;
use vmcell_wire::{Failure, FailureKind, Stage, StreamId};

use super::{Connection, Progress};
use crate::{
    event::{Event, Poller, Ready},
    link::LinkId,
    process::Caller,
};

/// Names a connection: its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) u32);

/// All connections.
pub(crate) struct Connections {
    places: Vec<Option<Place>>,
    /// Those whose streams have something to do.
    awake: Vec<ConnectionId>,
    /// Links with such streams.
    awake_links: Vec<LinkId>,
}

struct Place {
    caller: Caller,
    connection: Connection,
    is_awake: bool,
}

/// More at once are refused, so that other work finds descriptors: the kernel
/// gives PID 1 1024 of them.
const MAX_CONNECTIONS: usize = 480;

impl Connections {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            awake: Vec::new(),
            awake_links: Vec::new(),
        }
    }

    /// Begins to connect to a port.
    pub(crate) fn dial(
        &mut self,
        port: u16,
        caller: Caller,
        poller: &Poller,
    ) -> Result<ConnectionId, Failure<'static>> {
        let (id, place) = self.free_place()?;
        let mut connection = Connection::dial(port).map_err(failure)?;
        connection.advance();
        poller
            .watch(&connection, Event::Connection(id, Ready::NOTHING))
            .map_err(failure)?;
        *place = Some(Place {
            caller,
            connection,
            is_awake: false,
        });
        Ok(id)
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        Some(&mut self.place_mut(id)?.as_mut()?.connection)
    }

    /// Something has happened to a connection.
    pub(crate) fn is_ready(&mut self, id: ConnectionId, ready: Ready, poller: &Poller) {
        let Some(Some(place)) = self.place_mut(id) else {
            return;
        };
        let connection = &mut place.connection;
        let has_news = match connection.progress() {
            Progress::Dialling => {
                // What was told of a socket means nothing for the next one.
                let is_another = connection.advance();
                let event = Event::Connection(id, Ready::NOTHING);
                if is_another && let Err(error) = poller.watch(&*connection, event) {
                    connection.give_up(error);
                } else if !is_another {
                    connection.is_ready(ready);
                }
                connection.progress() != Progress::Dialling
            }
            _ => connection.is_ready(ready),
        };
        if !has_news || place.is_awake {
            return;
        }
        place.is_awake = true;
        let link = place.caller.link;
        self.awake.push(id);
        if !self.awake_links.contains(&link) {
            self.awake_links.push(link);
        }
    }

    /// Closes a connection of which both sides have said all.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        if let Some(place) = self.place_mut(id) {
            *place = None;
        }
    }

    /// The host is gone, or does not want the connection any more. If it has
    /// said all before, and the program has it, this is no more than that.
    pub(crate) fn leave(&mut self, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else {
            return;
        };
        connection.flush();
        if connection.was_told_all() {
            self.close(id);
        } else {
            self.reset(id);
        }
    }

    /// Breaks a connection.
    pub(crate) fn reset(&mut self, id: ConnectionId) {
        if let Some(place) = self.place_mut(id).and_then(Option::take) {
            place.connection.reset();
        }
    }

    /// A link whose streams may have something to say.
    pub(crate) fn next_awake(&mut self) -> Option<LinkId> {
        self.awake_links.pop()
    }

    pub(crate) fn is_awake(&self) -> bool {
        !self.awake_links.is_empty()
    }

    /// Tells which streams of a link have something to do.
    pub(crate) fn wake_streams(&mut self, link: LinkId, mut wake: impl FnMut(StreamId)) {
        let places = &mut self.places;
        self.awake.retain(|id| {
            let place = usize::try_from(id.0).ok();
            let place = place.and_then(|place| places.get_mut(place)?.as_mut());
            let Some(place) = place else {
                return false;
            };
            if place.caller.link != link {
                return true;
            }
            place.is_awake = false;
            wake(place.caller.stream);
            false
        });
    }

    fn free_place(&mut self) -> Result<(ConnectionId, &mut Option<Place>), Failure<'static>> {
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or(self.places.len());
        if place >= MAX_CONNECTIONS {
            let text = "too many connections at once";
            return Err(Failure::new(FailureKind::Limit, Stage::Dial, text));
        }
        if free.is_none() {
            self.places.push(None);
        }
        let id = u32::try_from(place).map_err(|_| failure(Errno::MFILE))?;
        let place = self.places.get_mut(place);
        Ok((
            ConnectionId(id),
            place.ok_or_else(|| failure(Errno::MFILE))?,
        ))
    }

    fn place_mut(&mut self, id: ConnectionId) -> Option<&mut Option<Place>> {
        self.places.get_mut(usize::try_from(id.0).ok()?)
    }
}

/// What a host is told of a connection that was not made or that broke.
pub(crate) fn failure(errno: Errno) -> Failure<'static> {
    let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
    let text = match errno {
        Errno::CONNREFUSED => "nobody listens on this port",
        Errno::CONNRESET | Errno::PIPE => "the program has broken the connection",
        _ => "the connection cannot be had",
    };
    Failure::from_errno(number, Stage::Dial, text)
}
