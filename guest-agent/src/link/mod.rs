//! A connected host: frames in, frames out.
//!
//! ```text
//!  fd ──read──> Decoder ──item──> dispatch ──> streams, processes
//!  fd <─write── Outgoing <─frame── fill <── streams, one after another
//! ```
//!
//! [`Outgoing`] holds a little control data, and at most one data frame under
//! way, whose payload stays in the process's ring or in what a job gives, or a
//! few that were read from connections. Everything else waits where it is: a
//! link that cannot be written stops the rings and the sockets, and full ones
//! stop the processes.

mod outgoing;
mod peer;
mod reset;
mod staged;
mod stream;
mod streams;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};
use vmcell_wire::{
    Decoder, Item, Outcome, Peer, StreamId, WireError, encode, limits::MAX_STREAMS, reset::Nonce,
};

use crate::{
    process::{Caller, ProcessId},
    tasks::Tasks,
};
use outgoing::{Outgoing, Written};
use reset::{Part, Resets};
use stream::Filled;
use streams::Streams;

pub(crate) use peer::is_from_host;
pub(crate) use stream::{
    JobStream, Place, PortStream, ProcessStream, ServiceStream, Stream, Wanted,
};

/// Names a link for as long as the agent lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u32);

/// What a link runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A virtio-serial port. It outlives the program at its other end; the
    /// next program begins anew with a reset, which it proves with this key.
    Port {
        /// What a reset begins with.
        key: [u8; 16],
    },
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
    /// A program begins anew and wants to see this first.
    Reset(Nonce),
}

impl From<WireError> for Lost {
    fn from(error: WireError) -> Self {
        Self::Violation(error)
    }
}

/// Something that came over a link.
pub(crate) enum Heard<'a> {
    /// The host said something.
    Item(Item<'a>),
    /// The conversation is over; another one may follow.
    Over(Lost),
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
    decoder: Decoder,
    /// Only on a medium that outlives a conversation.
    resets: Option<Resets>,
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
    pub(crate) streams: Streams,
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
            decoder: Decoder::new(Peer::Host),
            resets: match medium {
                Medium::Port { key } => Some(Resets::new(key)),
                Medium::Socket => None,
            },
            readable: true,
            watched_for_writes: false,
            conversation: Conversation::new(id),
        }
    }

    /// Whether another conversation can follow this one.
    pub(crate) fn can_begin_anew(&self) -> bool {
        self.resets.is_some()
    }

    /// Forgets everything that was said.
    pub(crate) fn begin_anew(&mut self) {
        self.decoder = Decoder::new(Peer::Host);
        self.conversation = Conversation::new(self.conversation.id);
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

    /// Reads, and hands everything that is heard to `handle`.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut handle: impl FnMut(&mut Conversation, Heard<'_>) -> Result<(), Lost>,
    ) -> Result<Turn, Lost> {
        for _ in 0..CALLS_PER_TURN {
            if !self.readable || self.conversation.outgoing.waiting() > MAX_UNREAD_ANSWERS {
                return Ok(Turn::Done);
            }
            match rustix::io::read(&self.descriptor, &mut *buffer) {
                Ok(0) => {
                    self.readable = false;
                    return Err(Lost::HungUp);
                }
                Ok(count) => {
                    let input = buffer.get(..count).unwrap_or_default();
                    self.hear(input, &mut handle)?;
                }
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    self.hear_held_back(&mut handle)?;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.readable = false;
                    return Err(Lost::HungUp);
                }
            }
        }
        Ok(Turn::More)
    }

    fn hear(
        &mut self,
        mut input: &[u8],
        handle: &mut impl FnMut(&mut Conversation, Heard<'_>) -> Result<(), Lost>,
    ) -> Result<(), Lost> {
        let Some(resets) = &mut self.resets else {
            return self.conversation.hear(&mut self.decoder, input, handle);
        };
        loop {
            let over = match resets.next_part(&mut input) {
                Part::Nothing => return Ok(()),
                Part::Said(bytes) => {
                    match self.conversation.hear(&mut self.decoder, bytes, handle) {
                        Ok(()) => continue,
                        Err(lost) => lost,
                    }
                }
                Part::Reset(nonce) => Lost::Reset(nonce),
            };
            handle(&mut self.conversation, Heard::Over(over))?;
            self.decoder = Decoder::new(Peer::Host);
            self.conversation = Conversation::new(self.conversation.id);
            match over {
                Lost::Reset(nonce) => self.conversation.control().extend_from_slice(&nonce),
                // Nobody knows where the next frame would begin.
                Lost::HungUp | Lost::Violation(_) => resets.ignore_until_reset(),
            }
        }
    }

    /// The end of a frame may look like the beginning of a reset. Its sender
    /// waits for an answer, so it is not held back for ever.
    fn hear_held_back(
        &mut self,
        handle: &mut impl FnMut(&mut Conversation, Heard<'_>) -> Result<(), Lost>,
    ) -> Result<(), Lost> {
        let Some(resets) = &mut self.resets else {
            return Ok(());
        };
        let Some(bytes) = resets.release(self.decoder.missing()) else {
            return Ok(());
        };
        match self.conversation.hear(&mut self.decoder, bytes, handle) {
            Ok(()) => Ok(()),
            Err(lost) => {
                handle(&mut self.conversation, Heard::Over(lost))?;
                resets.ignore_until_reset();
                self.begin_anew();
                Ok(())
            }
        }
    }

    /// Writes what the streams have to say.
    pub(crate) fn send(&mut self, tasks: &mut Tasks) -> Result<Turn, Lost> {
        let conversation = &mut self.conversation;
        for _ in 0..CALLS_PER_TURN {
            conversation.fill(tasks)?;
            match conversation.outgoing.write(&self.descriptor, tasks)? {
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
    fn new(id: LinkId) -> Self {
        Self {
            id,
            peer_window: None,
            streams: Streams::new(),
            outgoing: Outgoing::new(),
        }
    }

    fn hear(
        &mut self,
        decoder: &mut Decoder,
        mut input: &[u8],
        handle: &mut impl FnMut(&mut Self, Heard<'_>) -> Result<(), Lost>,
    ) -> Result<(), Lost> {
        while let Some(item) = decoder.decode(&mut input)? {
            handle(self, Heard::Item(item))?;
        }
        Ok(())
    }

    /// A stream of this link.
    pub(crate) fn caller(&self, stream: StreamId) -> Caller {
        Caller {
            link: self.id,
            stream,
        }
    }

    /// The size of the host's windows.
    pub(crate) fn window(&self) -> u32 {
        self.peer_window.unwrap_or(0)
    }

    /// Gives up all streams.
    pub(crate) fn lose_streams(&mut self, tasks: &mut Tasks) {
        for stream in self.streams.take_all().values() {
            stream.lose(tasks);
        }
    }

    /// The host knows the outcome of a stream.
    pub(crate) fn acknowledged(&mut self, stream: StreamId, tasks: &mut Tasks) {
        let known = self.streams.get(&stream);
        if known.is_some_and(|stream| stream.acknowledge(tasks)) {
            self.streams.remove(&stream);
        }
    }

    /// The ring of a process holds nothing for its stream any more.
    pub(crate) fn keep_frame_of(&mut self, process: ProcessId, tasks: &mut Tasks) {
        self.outgoing.keep_frame_of(process, tasks);
    }

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
    fn fill(&mut self, tasks: &mut Tasks) -> Result<(), Lost> {
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

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use proptest::prelude::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use vmcell_wire::{Hello, Request, reset::ResetKey};

    use super::*;

    /// What an agent hears.
    #[derive(Clone, Debug, PartialEq)]
    enum Note {
        Hello,
        Open(u32),
        Data(Vec<u8>),
        Over(Lost),
    }

    fn port() -> (Link, OwnedFd, ResetKey) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let key = ResetKey::new(*b"a key to a reset");
        let medium = Medium::Port {
            key: key.to_bytes(),
        };
        (Link::new(LinkId(0), ours, medium), theirs, key)
    }

    /// Sends bytes in pieces and answers what is heard, data joined.
    fn heard(link: &mut Link, host: &OwnedFd, bytes: &[u8], piece: usize) -> Vec<Note> {
        let mut notes: Vec<Note> = Vec::new();
        for piece in bytes.chunks(piece) {
            assert_eq!(rustix::io::write(host, piece), Ok(piece.len()));
            link.is_ready();
            let outcome = link.receive(&mut [0; 4096], |_, heard| {
                match (heard, notes.last_mut()) {
                    (Heard::Over(lost), _) => notes.push(Note::Over(lost)),
                    (Heard::Item(Item::Hello(_)), _) => notes.push(Note::Hello),
                    (Heard::Item(Item::Open { stream, .. }), _) => {
                        notes.push(Note::Open(stream.get()));
                    }
                    (Heard::Item(Item::Data { bytes, .. }), Some(Note::Data(all))) => {
                        all.extend(bytes);
                    }
                    (Heard::Item(Item::Data { bytes, .. }), _) => {
                        notes.push(Note::Data(bytes.to_vec()));
                    }
                    (Heard::Item(_), _) => {}
                }
                Ok(())
            });
            assert_eq!(outcome, Ok(Turn::Done));
        }
        notes
    }

    fn hello(out: &mut Vec<u8>) {
        encode::hello(out, &Hello::new("test", 1000, [0; 16])).unwrap();
    }

    fn ping(out: &mut Vec<u8>, stream: u32) {
        encode::open(out, StreamId::new(stream).unwrap(), &Request::Ping).unwrap();
    }

    fn written(link: &mut Link) -> Vec<u8> {
        link.conversation.control().clone()
    }

    proptest! {
        /// Wherever a host stops, and however the bytes are cut up, the next
        /// one is understood.
        #[test]
        fn a_reset_is_found_anywhere(stop in 0..200usize, piece in 1..100usize, nonce: [u8; 16]) {
            let (mut link, host, key) = port();
            let mut bytes = Vec::new();
            hello(&mut bytes);
            ping(&mut bytes, 5);
            let stream = StreamId::new(6).unwrap();
            let data = encode::data_header(stream, vmcell_wire::Channel::Stdin, 200).unwrap();
            bytes.extend(data);
            // Payload that looks like the beginning of the key again and again.
            bytes.extend(key.to_bytes().iter().take(7).cycle().take(200));
            bytes.truncate(stop);
            bytes.extend(key.reset(nonce));
            let before = heard(&mut link, &host, &bytes, piece);
            prop_assert_eq!(before.last(), Some(&Note::Over(Lost::Reset(nonce))));
            prop_assert_eq!(written(&mut link), nonce.to_vec());
            let mut next = Vec::new();
            hello(&mut next);
            ping(&mut next, 7);
            let after = heard(&mut link, &host, &next, piece);
            prop_assert_eq!(after, vec![Note::Hello, Note::Open(7)]);
        }

        #[test]
        fn after_garbage_nothing_is_heard_before_a_reset(
            garbage in prop::collection::vec(any::<u8>(), 0..300),
            piece in 1..100usize,
        ) {
            let (mut link, host, key) = port();
            let mut bytes = vec![0xff; 8];
            bytes.extend(garbage);
            hello(&mut bytes);
            ping(&mut bytes, 1);
            let violation = WireError::UnexpectedKind(0xff);
            prop_assert_eq!(
                heard(&mut link, &host, &bytes, piece),
                vec![Note::Over(Lost::Violation(violation))]
            );
            let mut next = key.reset([9; 16]).to_vec();
            hello(&mut next);
            ping(&mut next, 2);
            prop_assert_eq!(
                heard(&mut link, &host, &next, piece),
                vec![Note::Over(Lost::Reset([9; 16])), Note::Hello, Note::Open(2)]
            );
        }

        /// Its sender may wait for the answer.
        #[test]
        fn a_frame_that_ends_like_a_key_begins_is_heard_at_once(
            before in 0..20usize,
            like_key in 1..16usize,
            piece in 1..40usize,
        ) {
            let (mut link, host, key) = port();
            let mut bytes = Vec::new();
            hello(&mut bytes);
            let mut payload = vec![b'x'; before];
            payload.extend(&key.to_bytes()[..like_key]);
            let stream = StreamId::new(6).unwrap();
            let channel = vmcell_wire::Channel::Stdin;
            bytes.extend(encode::data_header(stream, channel, payload.len()).unwrap());
            bytes.extend(&payload);
            prop_assert_eq!(
                heard(&mut link, &host, &bytes, piece),
                vec![Note::Hello, Note::Data(payload)]
            );
            // And a reset is still found behind it.
            let notes = heard(&mut link, &host, &key.reset([3; 16]), piece);
            prop_assert_eq!(notes, vec![Note::Over(Lost::Reset([3; 16]))]);
        }
    }

    #[test]
    fn the_first_host_needs_no_reset_and_the_one_after_a_hang_up_neither() {
        let (mut link, host, _) = port();
        let mut bytes = Vec::new();
        hello(&mut bytes);
        assert_eq!(heard(&mut link, &host, &bytes, 1000), [Note::Hello]);
        drop(host);
        link.is_ready();
        let outcome = link.receive(&mut [0; 64], |_, _| Ok(()));
        assert_eq!(outcome, Err(Lost::HungUp));
        assert!(link.can_begin_anew());
    }
}
