use alloc::vec::Vec;

use crate::{
    error::WireError,
    event::Event,
    frame::{Channel, Header, Kind, Peer, StreamId},
    hello::Hello,
    message::message,
    outcome::Outcome,
    request::Request,
};

/// Turns bytes from a link, in pieces of any size, into frames.
///
/// It does no I/O. Control frames are returned whole; the payload of a data
/// frame is returned in the pieces in which it arrived, without copying. A
/// decoder buffers at most one incomplete control payload, and only the bytes
/// that have arrived: it never allocates the length that a header claims.
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
    /// The part of a control payload that has arrived. It is kept until the next
    /// header, because the returned item may borrow from it.
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

/// A decoded frame, or a piece of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The peer's hello.
    Hello(Hello<'a>),
    /// A stream was opened.
    Open {
        /// Its id.
        stream: StreamId,
        /// The request.
        request: Request<'a>,
    },
    /// A request that this crate cannot decode: the host may be newer. It is to
    /// be answered with a failure; the link remains usable.
    OpenUnknown {
        /// The stream it opened.
        stream: StreamId,
    },
    /// An event on a stream.
    Event {
        /// Its id.
        stream: StreamId,
        /// The event.
        event: Event<'a>,
        /// The event as it was encoded.
        payload: &'a [u8],
    },
    /// A stream ended.
    Close {
        /// Its id.
        stream: StreamId,
        /// The outcome.
        outcome: Outcome<'a>,
        /// The outcome as it was encoded.
        payload: &'a [u8],
    },
    /// The host cancels the stream.
    Cancel {
        /// Its id.
        stream: StreamId,
    },
    /// The host acknowledges the outcome of the stream.
    Ack {
        /// Its id.
        stream: StreamId,
    },
    /// Bytes of a data frame: all that have arrived, at least one.
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
        /// The number of additional bytes.
        bytes: u32,
    },
}

impl Decoder {
    /// Creates a decoder for the frames that `peer` sends.
    pub const fn new(peer: Peer) -> Self {
        Self {
            peer,
            state: State::BETWEEN_FRAMES,
            held: Vec::new(),
        }
    }

    /// Takes bytes off the front of `input` until there is an item. Returns
    /// `None` if it took all input and needs more.
    ///
    /// # Errors
    /// The bytes violate the protocol. The decoder must not be used again.
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
                control_item(header, payload).map(Some)
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

    /// Returns the stream and channel that the next bytes belong to, and how many
    /// bytes of the data payload are missing. A reader may read those bytes from
    /// the link directly into their destination, and then call
    /// [`received`](Self::received).
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

    /// Records that the caller read `count` bytes of
    /// [`pending_data`](Self::pending_data) itself.
    pub fn received(&mut self, count: usize) {
        if let State::Data { remaining, .. } = &mut self.state {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            *remaining = remaining.saturating_sub(count);
            if *remaining == 0 {
                self.state = State::BETWEEN_FRAMES;
            }
        }
    }

    /// Returns how many bytes the current frame is known to lack: those of its
    /// header first, then those of its payload. 0 between frames.
    pub fn missing(&self) -> usize {
        match self.state {
            State::Header { arrived: 0, .. } => 0,
            State::Header { arrived, .. } => Header::SIZE.saturating_sub(arrived),
            State::Control(header) => as_size(header.length).saturating_sub(self.held.len()),
            State::Data { remaining, .. } => as_size(remaining),
        }
    }

    /// Returns the capacity of the internal buffer, for tests of its bounds.
    pub fn buffer_capacity(&self) -> usize {
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
        // No item borrows from the last payload any more. A large buffer may not
        // be needed again.
        self.held.clear();
        self.held.shrink_to(MAX_RETAINED_BUFFER);
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

/// The largest buffer that a decoder keeps between frames, in bytes.
const MAX_RETAINED_BUFFER: usize = 4096;

fn control_item(header: Header, payload: &[u8]) -> Result<Item<'_>, WireError> {
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
        Kind::Event => Item::Event {
            stream,
            event: Event::decode(payload)?,
            payload,
        },
        Kind::Close => Item::Close {
            stream,
            outcome: Outcome::decode(payload)?,
            payload,
        },
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
        // A hello has no stream, and data frames are handled elsewhere.
        Kind::Hello | Kind::Data(_) => return Err(WireError::Malformed),
    })
}

/// Returns the next `length` bytes: borrowed from the input if it has them all
/// and nothing is buffered, else collected in `held`.
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
