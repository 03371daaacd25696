//! Links to hosts: frames in, frames out.
//!
//! ```text
//!  fd ──read──> Decoder ──item──> dispatch ──> streams, processes
//!  fd <─write── Outgoing <─frame── fill <── streams, one after another
//! ```
//!
//! [`Outgoing`] holds some control frames and either one data frame in flight,
//! whose payload stays in the ring of its process or in the output of its job,
//! or a few frames that were read from connections. Everything else waits at
//! its source: a link that cannot be written stops the rings and the sockets,
//! and full ones block the processes.

mod outgoing;
mod peer;
mod reset;
mod staged;
mod stream;
mod streams;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};
use vmcell_wire::{
    Decoder, Event, Hello, Item, Outcome, Peer, StreamId, WireError,
    limits::MAX_STREAMS,
    reset::{Nonce, RESET_PART},
};

use crate::{
    ids::{Caller, LinkId, ProcessId},
    tasks::Tasks,
};
use outgoing::{Outgoing, Written};
use reset::{Part, ResetDetector};
use stream::Filled;
use streams::Streams;

pub(crate) use peer::is_from_host;
#[cfg(feature = "network")]
pub(crate) use stream::CaptureStream;
#[cfg(feature = "files")]
pub(crate) use stream::JobStream;
#[cfg(feature = "ports")]
pub(crate) use stream::PortStream;
pub(crate) use stream::{FreezeStream, ProcessStream, Stream};
#[cfg(feature = "services")]
pub(crate) use stream::{ServiceStream, WaitCondition};

/// The transport of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A virtio-serial port. It outlives the program at its other end; the next
    /// program starts a new session with a reset, which it authenticates with
    /// this key.
    Port {
        /// The key that starts a reset.
        key: [u8; 16],
    },
    /// A connected socket, which ends with its peer.
    Socket,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// The peer closed the link.
    Disconnected,
    /// The peer violated the protocol.
    Violation(WireError),
    /// A program starts a new session and expects this nonce back first.
    Reset(Nonce),
}

impl From<WireError> for LinkError {
    fn from(error: WireError) -> Self {
        Self::Violation(error)
    }
}

/// Input from a link.
pub(crate) enum Received<'a> {
    /// A decoded item.
    Item(Item<'a>),
    /// The session is over; another one may follow.
    SessionOver(LinkError),
}

/// Whether a link has more work than one turn allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The link waits for an event.
    Done,
    /// The link needs another turn after the others.
    More,
}

pub(crate) struct Link {
    descriptor: OwnedFd,
    decoder: Decoder,
    /// Only on a medium that outlives a session.
    resets: Option<ResetDetector>,
    readable: bool,
    /// Whether epoll watches it for writability.
    pub(crate) watched_for_writes: bool,
    pub(crate) session: LinkSession,
}

/// The protocol state of a link, from one hello to the next.
pub(crate) struct LinkSession {
    pub(crate) id: LinkId,
    /// The window from the host's hello; `None` before it.
    pub(crate) peer_window: Option<u32>,
    pub(crate) streams: Streams,
    outgoing: Outgoing,
    /// The key of the resets that follow, if it has changed and the link does not
    /// look for it yet.
    new_reset_key: Option<[u8; RESET_PART]>,
}

/// The maximum number of reads and of writes in one turn.
const CALLS_PER_TURN: usize = 16;

/// The agent stops reading requests while so many bytes of control frames are
/// unwritten.
const MAX_UNREAD_ANSWERS: usize = 64 * 1024;

impl Link {
    pub(crate) fn new(id: LinkId, descriptor: OwnedFd, medium: Medium) -> Self {
        Self {
            descriptor,
            decoder: Decoder::new(Peer::Host),
            resets: match medium {
                Medium::Port { key } => Some(ResetDetector::new(key)),
                Medium::Socket => None,
            },
            readable: true,
            watched_for_writes: false,
            session: LinkSession::new(id),
        }
    }

    /// Returns whether another session can follow this one.
    pub(crate) fn can_restart_session(&self) -> bool {
        self.resets.is_some()
    }

    /// Discards the state of the session.
    pub(crate) fn restart_session(&mut self) {
        self.decoder = Decoder::new(Peer::Host);
        self.session = self.session.next();
    }

    pub(crate) fn on_ready(&mut self) {
        self.readable = true;
        self.session.outgoing.on_ready();
    }

    /// Returns whether it waits to become writable.
    pub(crate) fn is_blocked(&self) -> bool {
        self.session.outgoing.is_blocked()
    }

    /// Returns whether it has only deferred frames to write.
    pub(crate) fn has_deferred(&self) -> bool {
        self.session.outgoing.has_deferred()
    }

    pub(crate) fn flush_now(&mut self) {
        self.session.outgoing.flush_now();
    }

    /// Reads from the link and passes everything to `handle`.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut handle: impl FnMut(&mut LinkSession, Received<'_>) -> Result<(), LinkError>,
    ) -> Result<Turn, LinkError> {
        for _ in 0..CALLS_PER_TURN {
            if !self.readable || self.session.outgoing.waiting() > MAX_UNREAD_ANSWERS {
                return Ok(Turn::Done);
            }
            match rustix::io::read(&self.descriptor, &mut *buffer) {
                Ok(0) => {
                    self.readable = false;
                    return Err(LinkError::Disconnected);
                }
                Ok(count) => {
                    let input = buffer.get(..count).unwrap_or_default();
                    self.process_input(input, &mut handle)?;
                }
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    self.process_held_back(&mut handle)?;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.readable = false;
                    return Err(LinkError::Disconnected);
                }
            }
        }
        Ok(Turn::More)
    }

    fn process_input(
        &mut self,
        input: &[u8],
        handle: &mut impl FnMut(&mut LinkSession, Received<'_>) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        let mut rest = self.process_with_one_key(input, handle)?;
        // Each time, at least the request that changes the key is gone.
        while !rest.is_empty() {
            rest = self.process_with_one_key(&rest, handle)?;
        }
        Ok(())
    }

    /// Processes input up to a request that changes the reset key. Returns the bytes
    /// after it, which are to be searched for the new key.
    fn process_with_one_key(
        &mut self,
        mut input: &[u8],
        handle: &mut impl FnMut(&mut LinkSession, Received<'_>) -> Result<(), LinkError>,
    ) -> Result<Vec<u8>, LinkError> {
        let Some(resets) = &mut self.resets else {
            loop {
                let decoder = &mut self.decoder;
                self.session.process_input(decoder, &mut input, handle)?;
                if self.session.new_reset_key.take().is_none() {
                    return Ok(Vec::new());
                }
            }
        };
        // A request on another link has changed it.
        if let Some(key) = self.session.new_reset_key.take() {
            let mut rest = resets.change_key(key);
            rest.extend_from_slice(input);
            return Ok(rest);
        }
        loop {
            let over = match resets.next_part(&mut input) {
                Part::Nothing => return Ok(Vec::new()),
                Part::Payload(mut bytes) => {
                    let decoder = &mut self.decoder;
                    match self.session.process_input(decoder, &mut bytes, handle) {
                        Ok(()) => {
                            let Some(key) = self.session.new_reset_key.take() else {
                                continue;
                            };
                            let mut rest = bytes.to_vec();
                            rest.extend(resets.change_key(key));
                            rest.extend_from_slice(input);
                            return Ok(rest);
                        }
                        Err(error) => error,
                    }
                }
                Part::Reset(nonce) => LinkError::Reset(nonce),
            };
            handle(&mut self.session, Received::SessionOver(over))?;
            self.decoder = Decoder::new(Peer::Host);
            self.session = self.session.next();
            match over {
                LinkError::Reset(nonce) => self.session.control().extend_from_slice(&nonce),
                // The start of the next frame is unknown.
                LinkError::Disconnected | LinkError::Violation(_) => resets.discard_until_reset(),
            }
        }
    }

    /// Decodes held-back bytes that complete a frame. The end of a frame may
    /// look like the start of a reset, but its sender waits for an answer.
    fn process_held_back(
        &mut self,
        handle: &mut impl FnMut(&mut LinkSession, Received<'_>) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        let Some(resets) = &mut self.resets else {
            return Ok(());
        };
        let Some(mut bytes) = resets.release(self.decoder.missing()) else {
            return Ok(());
        };
        let decoder = &mut self.decoder;
        match self.session.process_input(decoder, &mut bytes, handle) {
            // More bytes than the frame lacked may have been held back.
            Ok(()) if self.session.new_reset_key.is_some() => {
                let rest = bytes.to_vec();
                self.process_input(&rest, handle)
            }
            Ok(()) => Ok(()),
            Err(error) => {
                handle(&mut self.session, Received::SessionOver(error))?;
                resets.discard_until_reset();
                self.restart_session();
                Ok(())
            }
        }
    }

    /// Writes the pending frames and those that the streams have ready.
    pub(crate) fn send(&mut self, tasks: &mut Tasks) -> Result<Turn, LinkError> {
        let session = &mut self.session;
        for _ in 0..CALLS_PER_TURN {
            session.fill(tasks)?;
            match session.outgoing.write(&self.descriptor, tasks)? {
                Written::All => return Ok(Turn::Done),
                Written::Some => {}
                Written::Blocked => return Ok(Turn::Done),
            }
        }
        Ok(Turn::More)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl LinkSession {
    fn new(id: LinkId) -> Self {
        Self {
            id,
            peer_window: None,
            streams: Streams::new(),
            outgoing: Outgoing::new(),
            new_reset_key: None,
        }
    }

    /// Returns the state of the session that follows on the same link.
    fn next(&self) -> Self {
        Self {
            new_reset_key: self.new_reset_key,
            ..Self::new(self.id)
        }
    }

    /// Takes items off the front of `input`, up to one that changes the reset key.
    fn process_input(
        &mut self,
        decoder: &mut Decoder,
        input: &mut &[u8],
        handle: &mut impl FnMut(&mut Self, Received<'_>) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        while let Some(item) = decoder.decode(input)? {
            handle(self, Received::Item(item))?;
            if self.new_reset_key.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Replaces the key of the resets that follow. Sockets have none, and ignore it.
    pub(crate) fn change_reset_key(&mut self, key: [u8; RESET_PART]) {
        self.new_reset_key = Some(key);
    }

    /// Returns the global name of a stream of this link.
    pub(crate) fn caller(&self, stream: StreamId) -> Caller {
        Caller {
            link: self.id,
            stream,
        }
    }

    /// Handles the host's hello.
    pub(crate) fn greeted(&mut self, hello: &Hello<'_>) {
        self.peer_window = Some(hello.window);
        self.outgoing.set_host_capabilities(hello.capabilities);
    }

    /// Returns the size of the host's receive windows.
    pub(crate) fn window(&self) -> u32 {
        self.peer_window.unwrap_or(0)
    }

    /// Drops all streams because the session is over.
    pub(crate) fn drop_streams(&mut self, tasks: &mut Tasks) {
        for stream in self.streams.take_all().values() {
            stream.on_link_lost(tasks);
        }
    }

    /// Handles the host's acknowledgement of a stream's outcome.
    pub(crate) fn acknowledged(&mut self, stream: StreamId, tasks: &mut Tasks) {
        let known = self.streams.get(&stream);
        if known.is_some_and(|stream| stream.acknowledge(tasks)) {
            self.streams.remove(&stream);
        }
    }

    /// Copies the frame in flight of a process whose ring is about to stop
    /// holding bytes for its stream.
    pub(crate) fn copy_frame_of(&mut self, process: ProcessId, tasks: &mut Tasks) {
        self.outgoing.copy_frame_of(process, tasks);
    }

    /// Returns the buffer for urgent control frames.
    pub(crate) fn control(&mut self) -> &mut alloc::vec::Vec<u8> {
        self.outgoing.control()
    }

    /// Returns the buffer for control frames that can wait.
    pub(crate) fn deferred_control(&mut self) -> &mut alloc::vec::Vec<u8> {
        self.outgoing.deferred_control()
    }

    /// Closes a stream with its outcome.
    pub(crate) fn close(
        &mut self,
        stream: StreamId,
        outcome: &Outcome<'_>,
    ) -> Result<(), LinkError> {
        self.streams.remove(&stream);
        Ok(self.outgoing.close(stream, outcome)?)
    }

    /// Adds an event of a stream that must be written now.
    pub(crate) fn event(&mut self, stream: StreamId, event: &Event<'_>) -> Result<(), LinkError> {
        Ok(self.outgoing.event(stream, event)?)
    }

    /// Adds an event of a stream that can wait.
    pub(crate) fn deferred_event(
        &mut self,
        stream: StreamId,
        event: &Event<'_>,
    ) -> Result<(), LinkError> {
        Ok(self.outgoing.deferred_event(stream, event)?)
    }

    /// Returns whether a stream with this id may be opened.
    pub(crate) fn may_open(&self, stream: StreamId) -> bool {
        self.streams.len() < MAX_STREAMS && !self.streams.contains_key(&stream)
    }

    /// Adds frames of the streams in round-robin order until there is enough to
    /// write.
    fn fill(&mut self, tasks: &mut Tasks) -> Result<(), LinkError> {
        tasks
            .connections
            .wake_streams(self.id, |stream| self.streams.wake(stream));
        let mut silent = 0;
        while silent < self.streams.awake() && self.outgoing.has_room() {
            let Some((id, stream)) = self.streams.next_in_turn() else {
                return Ok(());
            };
            match stream.fill(&mut self.outgoing, tasks)? {
                Filled::Something => silent = 0,
                Filled::Nothing => silent = silent.saturating_add(1),
                Filled::Asleep => self.streams.sleep(id),
                Filled::Finished => {
                    self.streams.remove(&id);
                    silent = 0;
                }
            }
        }
        Ok(())
    }
}
