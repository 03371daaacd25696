use alloc::vec::Vec;

use serde::Deserialize;

use crate::{
    error::WireError,
    frame::{Channel, Header, Kind, Peer, StreamId},
    hello::Hello,
    message::{Event, Outcome, Request},
};

/// Turns bytes from a link into frames, however the bytes were cut up.
///
/// It does no I/O. Control frames come out whole; the payload of a data frame
/// comes out in the pieces in which it arrived, so that it is never copied or
/// held here. A decoder holds at most one unfinished control payload, and only
/// as much of it as has arrived: what a header claims is never allocated.
///
/// ```text
///            8 bytes                   control: `length` bytes
///  Header ------------> Control ------------------------------> Header
///            8 bytes                   data: `length` bytes
///  Header ------------> Data    ------------------------------> Header
/// ```
#[derive(Debug)]
pub struct Decoder {
    peer: Peer,
    state: State,
    /// The part of a control payload that has arrived. It outlives its frame,
    /// because the item that was handed out may borrow from it.
    held: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Header {
        bytes: [u8; Header::SIZE],
        arrived: usize,
    },
    Control(Header),
    Data {
        stream: StreamId,
        channel: Channel,
        remaining: u32,
    },
}

/// One thing that the peer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The peer introduced itself.
    Hello(Hello<'a>),
    /// A stream was opened.
    Open {
        /// Its id.
        stream: StreamId,
        /// What is asked.
        request: Request<'a>,
    },
    /// A request came that this crate cannot read: the host may be newer.
    /// Answer it with a failure; the link is fine.
    OpenUnknown {
        /// The stream it opened.
        stream: StreamId,
    },
    /// Something happened on a stream.
    Event {
        /// Its id.
        stream: StreamId,
        /// What happened.
        event: Event<'a>,
    },
    /// A stream ended.
    Close {
        /// Its id.
        stream: StreamId,
        /// How.
        outcome: Outcome<'a>,
    },
    /// The host does not want the stream any more.
    Cancel {
        /// Its id.
        stream: StreamId,
    },
    /// The host has the outcome of the stream.
    Ack {
        /// Its id.
        stream: StreamId,
    },
    /// Bytes of a data frame: all that have arrived, never none.
    Data {
        /// The stream.
        stream: StreamId,
        /// The channel.
        channel: Channel,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// No more bytes will come on the channel.
    End {
        /// The stream.
        stream: StreamId,
        /// The channel.
        channel: Channel,
    },
    /// More bytes may be sent on the channel.
    Credit {
        /// The stream.
        stream: StreamId,
        /// The channel.
        channel: Channel,
        /// How many more.
        bytes: u32,
    },
}

impl Decoder {
    /// A decoder for the frames that `peer` sends.
    pub const fn new(peer: Peer) -> Self {
        Self {
            peer,
            state: State::BETWEEN_FRAMES,
            held: Vec::new(),
        }
    }

    /// Takes bytes off the front of `input` until there is an item. None means
    /// that all input is taken and more is needed.
    ///
    /// # Errors
    /// The bytes are not the protocol. The decoder must not be used again.
    pub fn decode<'d, 'i: 'd>(
        &'d mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Item<'d>>, WireError> {
        if matches!(self.state, State::Header { .. }) {
            let Some(header) = self.take_header(input)? else {
                return Ok(None);
            };
            self.state = State::after(header);
        }
        match self.state {
            State::Header { .. } => Ok(None),
            State::Control(header) => {
                let Some(payload) = take_payload(&mut self.held, input, header.length) else {
                    return Ok(None);
                };
                self.state = State::BETWEEN_FRAMES;
                control(header, payload).map(Some)
            }
            State::Data {
                stream,
                channel,
                remaining,
            } => {
                let bytes = take_up_to(input, as_size(remaining));
                if bytes.is_empty() {
                    return Ok(None);
                }
                self.received(bytes.len());
                Ok(Some(Item::Data {
                    stream,
                    channel,
                    bytes,
                }))
            }
        }
    }

    /// The data payload that the next bytes belong to, and how many of it are
    /// to come. A reader may take those bytes from the link itself, straight
    /// to where they belong, and say so with [`received`](Self::received).
    pub fn pending_data(&self) -> Option<(StreamId, Channel, usize)> {
        match self.state {
            State::Data {
                stream,
                channel,
                remaining,
            } => Some((stream, channel, as_size(remaining))),
            State::Header { .. } | State::Control(_) => None,
        }
    }

    /// Says that `count` bytes of [`pending_data`](Self::pending_data) were
    /// taken.
    pub fn received(&mut self, count: usize) {
        if let State::Data { remaining, .. } = &mut self.state {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            *remaining = remaining.saturating_sub(count);
            if *remaining == 0 {
                self.state = State::BETWEEN_FRAMES;
            }
        }
    }

    /// How many bytes the frame under way lacks, as far as is known: of its
    /// header first, then of its payload. None between frames.
    pub fn missing(&self) -> usize {
        match self.state {
            State::Header { arrived: 0, .. } => 0,
            State::Header { arrived, .. } => Header::SIZE.saturating_sub(arrived),
            State::Control(header) => as_size(header.length).saturating_sub(self.held.len()),
            State::Data { remaining, .. } => as_size(remaining),
        }
    }

    /// How many bytes the decoder holds back, for tests of its bounds.
    pub fn held(&self) -> usize {
        self.held.capacity()
    }

    fn take_header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, WireError> {
        let State::Header { bytes, arrived } = &mut self.state else {
            return Ok(None);
        };
        for (place, byte) in bytes
            .iter_mut()
            .skip(*arrived)
            .zip(take_up_to(input, Header::SIZE.saturating_sub(*arrived)))
        {
            *place = *byte;
            *arrived = arrived.saturating_add(1);
        }
        if *arrived < Header::SIZE {
            return Ok(None);
        }
        let header = Header::parse(*bytes, self.peer)?;
        // The item that borrowed from the last payload is gone. A large buffer
        // was needed once and may not be needed again.
        self.held.clear();
        self.held.shrink_to(RETAINED);
        Ok(Some(header))
    }
}

impl State {
    const BETWEEN_FRAMES: Self = Self::Header {
        bytes: [0; Header::SIZE],
        arrived: 0,
    };

    fn after(header: Header) -> Self {
        match (header.kind, header.stream) {
            (Kind::Data(channel), Some(stream)) => Self::Data {
                stream,
                channel,
                remaining: header.length,
            },
            _ => Self::Control(header),
        }
    }
}

/// How much buffer a decoder keeps between frames.
const RETAINED: usize = 4096;

/// Decodes a postcard message that must fill `bytes`.
pub(crate) fn message<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok(_) | Err(_) => Err(WireError::Malformed),
    }
}

fn control(header: Header, payload: &[u8]) -> Result<Item<'_>, WireError> {
    let Some(stream) = header.stream else {
        let hello: Hello<'_> = message(payload)?;
        hello.check()?;
        return Ok(Item::Hello(hello));
    };
    Ok(match header.kind {
        Kind::Open => match message(payload) {
            Ok(request) => Item::Open { stream, request },
            Err(_) => Item::OpenUnknown { stream },
        },
        Kind::Event => {
            let event: Event<'_> = message(payload)?;
            if !event.is_valid() {
                return Err(WireError::Malformed);
            }
            Item::Event { stream, event }
        }
        Kind::Close => {
            let outcome: Outcome<'_> = message(payload)?;
            if !outcome.is_valid() {
                return Err(WireError::Malformed);
            }
            Item::Close { stream, outcome }
        }
        Kind::Cancel => Item::Cancel { stream },
        Kind::Ack => Item::Ack { stream },
        Kind::End(channel) => Item::End { stream, channel },
        Kind::Credit(channel) => {
            let bytes = payload.try_into().map_err(|_| WireError::Malformed)?;
            match u32::from_le_bytes(bytes) {
                0 => return Err(WireError::Malformed),
                bytes => Item::Credit {
                    stream,
                    channel,
                    bytes,
                },
            }
        }
        // A header without a stream is a hello, and data never comes here.
        Kind::Hello | Kind::Data(_) => return Err(WireError::Malformed),
    })
}

/// The next `length` bytes: from the input alone if they are all there and
/// nothing is held, else gathered in `held`.
fn take_payload<'d, 'i: 'd>(
    held: &'d mut Vec<u8>,
    input: &mut &'i [u8],
    length: u32,
) -> Option<&'d [u8]> {
    let length = as_size(length);
    if held.is_empty()
        && let Some((payload, rest)) = input.split_at_checked(length)
    {
        *input = rest;
        return Some(payload);
    }
    let missing = length.saturating_sub(held.len());
    held.extend_from_slice(take_up_to(input, missing));
    (held.len() == length).then_some(held)
}

fn take_up_to<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at_checked(count).unwrap_or((input, &[]));
    *input = rest;
    taken
}

/// Lossless: every target of this crate has pointers of at least 32 bits.
fn as_size(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
