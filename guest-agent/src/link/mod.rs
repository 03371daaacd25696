//! A connected host: frames in, frames out.
//!
//! ```text
//!  fd ──read──> Decoder ──item──> dispatch ──> streams, processes
//!  fd <─write── Outgoing <─frame── fill <── streams, one after another
//! ```
//!
//! [`Outgoing`] holds a little control data and at most one data frame under
//! way, whose payload stays in the process's ring. Everything else waits where
//! it is: a link that cannot be written stops the rings, and full rings stop
//! the processes.

mod outgoing;
mod stream;

use alloc::collections::BTreeMap;
use core::ops::Bound;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};
use vmcell_wire::{Decoder, Item, Outcome, Peer, StreamId, WireError, encode, limits::MAX_STREAMS};

use crate::process::Processes;
use outgoing::{Outgoing, Written};
use stream::Filled;

pub(crate) use stream::Stream;

/// Names a link for as long as the agent lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u32);

/// What a link runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A virtio-serial port. It outlives the program at its other end; the
    /// next program finds a fresh link.
    Port,
    /// A connected socket, which ends with its peer.
    Socket,
}

/// The link is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The program at the other end is gone.
    HungUp,
    /// It does not keep the protocol.
    Violation(WireError),
}

impl From<WireError> for Lost {
    fn from(error: WireError) -> Self {
        Self::Violation(error)
    }
}

/// Whether a link has more to do than one turn allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It waits for an event.
    Done,
    /// It wants another turn after the others.
    More,
}

pub(crate) struct Link {
    descriptor: OwnedFd,
    pub(crate) medium: Medium,
    decoder: Decoder,
    readable: bool,
    /// Whether the poller watches it for room to write.
    pub(crate) watched_for_writes: bool,
    pub(crate) conversation: Conversation,
}

/// What has been said on a link so far.
pub(crate) struct Conversation {
    pub(crate) id: LinkId,
    /// The window that the host's hello named; none before it.
    pub(crate) peer_window: Option<u32>,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    /// The stream that sent last: the next one goes first.
    turn: Option<StreamId>,
    outgoing: Outgoing,
}

/// How often a link reads or writes before others have their turn.
const CALLS_PER_TURN: usize = 16;

/// A host that does not read its answers is not listened to either.
const MAX_UNREAD_ANSWERS: usize = 64 * 1024;

impl Link {
    pub(crate) fn new(id: LinkId, descriptor: OwnedFd, medium: Medium) -> Self {
        Self {
            descriptor,
            medium,
            decoder: Decoder::new(Peer::Host),
            readable: true,
            watched_for_writes: false,
            conversation: Conversation {
                id,
                peer_window: None,
                streams: BTreeMap::new(),
                turn: None,
                outgoing: Outgoing::new(),
            },
        }
    }

    /// The same medium, with everything that was said on it forgotten.
    pub(crate) fn renewed(self) -> Self {
        Self {
            readable: false,
            watched_for_writes: self.watched_for_writes,
            ..Self::new(self.conversation.id, self.descriptor, self.medium)
        }
    }

    pub(crate) fn is_ready(&mut self) {
        self.readable = true;
        self.conversation.outgoing.is_ready();
    }

    /// Whether it waits for room to write.
    pub(crate) fn is_blocked(&self) -> bool {
        self.conversation.outgoing.is_blocked()
    }

    /// Whether it has something to say that waits for company.
    pub(crate) fn is_patient(&self) -> bool {
        self.conversation.outgoing.is_patient()
    }

    pub(crate) fn hurry(&mut self) {
        self.conversation.outgoing.hurry();
    }

    /// Reads, and hands every item to `handle`.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut handle: impl FnMut(&mut Conversation, Item<'_>) -> Result<(), Lost>,
    ) -> Result<Turn, Lost> {
        for _ in 0..CALLS_PER_TURN {
            if !self.readable || self.conversation.outgoing.waiting() > MAX_UNREAD_ANSWERS {
                return Ok(Turn::Done);
            }
            match rustix::io::read(&self.descriptor, &mut *buffer) {
                Ok(0) => return Err(Lost::HungUp),
                Ok(count) => {
                    let mut input = buffer.get(..count).unwrap_or_default();
                    while let Some(item) = self.decoder.decode(&mut input)? {
                        handle(&mut self.conversation, item)?;
                    }
                }
                Err(Errno::AGAIN) => self.readable = false,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Lost::HungUp),
            }
        }
        Ok(Turn::More)
    }

    /// Writes what the streams have to say.
    pub(crate) fn send(&mut self, processes: &mut Processes) -> Result<Turn, Lost> {
        let conversation = &mut self.conversation;
        for _ in 0..CALLS_PER_TURN {
            conversation.fill(processes)?;
            match conversation.outgoing.write(&self.descriptor, processes)? {
                Written::Everything => return Ok(Turn::Done),
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

impl Conversation {
    /// The bytes of control frames to be sent.
    pub(crate) fn control(&mut self) -> &mut alloc::vec::Vec<u8> {
        self.outgoing.control()
    }

    /// The same for frames that nobody is in a hurry for.
    pub(crate) fn unhurried(&mut self) -> &mut alloc::vec::Vec<u8> {
        self.outgoing.unhurried()
    }

    /// Ends a stream that has no more to say than this.
    pub(crate) fn close(&mut self, stream: StreamId, outcome: &Outcome<'_>) -> Result<(), Lost> {
        self.streams.remove(&stream);
        Ok(encode::close(self.control(), stream, outcome)?)
    }

    /// Whether one more stream may be opened under this id.
    pub(crate) fn may_open(&self, stream: StreamId) -> bool {
        self.streams.len() < MAX_STREAMS && !self.streams.contains_key(&stream)
    }

    /// Lets the streams say something, each in its turn, until there is enough
    /// to write.
    fn fill(&mut self, processes: &mut Processes) -> Result<(), Lost> {
        let mut silent = 0;
        while silent < self.streams.len() && self.outgoing.has_room() {
            let Some(id) = self.next_in_turn() else {
                return Ok(());
            };
            self.turn = Some(id);
            let Some(stream) = self.streams.get_mut(&id) else {
                return Ok(());
            };
            match stream.fill(&mut self.outgoing, processes)? {
                Filled::Something => silent = 0,
                Filled::Nothing => silent = silent.saturating_add(1),
                Filled::Finished => {
                    self.streams.remove(&id);
                    silent = 0;
                }
            }
        }
        Ok(())
    }

    fn next_in_turn(&self) -> Option<StreamId> {
        let after = match self.turn {
            Some(turn) => self
                .streams
                .range((Bound::Excluded(turn), Bound::Unbounded))
                .next(),
            None => None,
        };
        after
            .or_else(|| self.streams.first_key_value())
            .map(|(id, _)| *id)
    }
}
