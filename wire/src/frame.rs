//! The layout of a frame.
//!
//! ```text
//! byte    0        4          7      8
//!         +--------+----------+------+----------------------+
//!         | length | stream   | kind | payload              |
//!         | u32 le | u24 le   | u8   | `length` bytes       |
//!         +--------+----------+------+----------------------+
//!
//! kind    bits 7..4            bits 3..0
//!         0 control            1 Hello  2 Open  3 Event  4 Close  5 Cancel  6 Ack
//!         1 Data               channel
//!         2 End                channel
//!         3 Credit             channel
//! ```
//!
//! | kind   | sent by | payload                                    |
//! |--------|---------|--------------------------------------------|
//! | Hello  | both    | postcard [`Hello`](crate::Hello), stream 0 |
//! | Open   | host    | postcard [`Request`](crate::Request)       |
//! | Event  | guest   | postcard [`Event`](crate::Event)           |
//! | Close  | guest   | postcard [`Outcome`](crate::Outcome)       |
//! | Cancel | host    | nothing                                    |
//! | Ack    | host    | nothing                                    |
//! | Data   | both    | raw bytes, at least one                    |
//! | End    | both    | nothing                                    |
//! | Credit | both    | u32 le, bytes granted, not zero            |
//!
//! Channels have the numbers of the standard file descriptors: 0 flows to the
//! guest, 1 and 2 flow from it. `Close` is the last frame that a guest sends on
//! a stream, and `Ack` the host's answer to it; the id is free again after that.
//! To abort a request, the host sends `Cancel` and waits for `Close`.

use crate::{error::WireError, limits::MAX_PAYLOAD};

/// Which end of a link a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The host library.
    Host,
    /// The guest agent.
    Guest,
}

/// One direction of raw bytes within a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Channel {
    /// Bytes from the host to the guest.
    Stdin = 0,
    /// Bytes from the guest to the host.
    Stdout = 1,
    /// Diagnostics from the guest to the host.
    Stderr = 2,
}

impl Channel {
    /// Returns the peer that sends data on this channel. The other sends credit.
    pub const fn sender(self) -> Peer {
        match self {
            Self::Stdin => Peer::Host,
            Self::Stdout | Self::Stderr => Peer::Guest,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Stdin => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }

    const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Stdin),
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            _ => None,
        }
    }
}

/// The id of a stream: 1 to 2^24 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
    /// The largest stream id.
    pub const MAX: Self = Self(0x00ff_ffff);

    /// Creates an id from a number.
    ///
    /// # Errors
    /// [`WireError::BadStream`] if the number is 0 or needs more than 24 bits.
    pub const fn new(number: u32) -> Result<Self, WireError> {
        if number == 0 || number > Self::MAX.0 {
            return Err(WireError::BadStream(number));
        }
        Ok(Self(number))
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the next id; 1 follows the largest.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(number) if number <= Self::MAX.0 => Self(number),
            _ => Self(1),
        }
    }
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first frame in each direction.
    Hello,
    /// Opens a stream with a request.
    Open,
    /// An event on a stream.
    Event,
    /// The outcome of a stream, and its end.
    Close,
    /// The host cancels the stream.
    Cancel,
    /// The host acknowledges the outcome of the stream.
    Ack,
    /// Raw bytes.
    Data(Channel),
    /// No more bytes will follow on the channel.
    End(Channel),
    /// More bytes may be sent on the channel.
    Credit(Channel),
}

impl Kind {
    const fn byte(self) -> u8 {
        match self {
            Self::Hello => 0x01,
            Self::Open => 0x02,
            Self::Event => 0x03,
            Self::Close => 0x04,
            Self::Cancel => 0x05,
            Self::Ack => 0x06,
            Self::Data(channel) => 0x10 | channel.bits(),
            Self::End(channel) => 0x20 | channel.bits(),
            Self::Credit(channel) => 0x30 | channel.bits(),
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0x01 => return Some(Self::Hello),
            0x02 => return Some(Self::Open),
            0x03 => return Some(Self::Event),
            0x04 => return Some(Self::Close),
            0x05 => return Some(Self::Cancel),
            0x06 => return Some(Self::Ack),
            _ => {}
        }
        match (byte & 0xf0, Channel::from_bits(byte & 0x0f)) {
            (0x10, Some(channel)) => Some(Self::Data(channel)),
            (0x20, Some(channel)) => Some(Self::End(channel)),
            (0x30, Some(channel)) => Some(Self::Credit(channel)),
            _ => None,
        }
    }

    fn may_come_from(self, peer: Peer) -> bool {
        match self {
            Self::Hello => true,
            Self::Open | Self::Cancel | Self::Ack => peer == Peer::Host,
            Self::Event | Self::Close => peer == Peer::Guest,
            Self::Data(channel) | Self::End(channel) => channel.sender() == peer,
            Self::Credit(channel) => channel.sender() != peer,
        }
    }

    const fn permits_length(self, length: u32) -> bool {
        match self {
            Self::Cancel | Self::Ack | Self::End(_) => length == 0,
            Self::Credit(_) => length == 4,
            Self::Hello | Self::Open | Self::Event | Self::Close | Self::Data(_) => {
                length >= 1 && length <= MAX_PAYLOAD
            }
        }
    }
}

/// The fixed start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of payload bytes that follow.
    pub length: u32,
    /// The stream; `None` for [`Kind::Hello`].
    pub stream: Option<StreamId>,
    /// The kind of the frame.
    pub kind: Kind,
}

impl Header {
    /// The size of a header in bytes.
    pub const SIZE: usize = 8;

    /// Returns the encoded header.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        let [s0, s1, s2, _] = self.stream.map_or(0, StreamId::get).to_le_bytes();
        [l0, l1, l2, l3, s0, s1, s2, self.kind.byte()]
    }

    /// Decodes and validates a header that `peer` sent.
    ///
    /// # Errors
    /// The kind is unknown or `peer` may not send it, the length is invalid for
    /// the kind, or the stream id is zero where one is required or nonzero where
    /// none is allowed.
    pub fn parse(bytes: [u8; Self::SIZE], peer: Peer) -> Result<Self, WireError> {
        let [l0, l1, l2, l3, s0, s1, s2, kind_byte] = bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let number = u32::from_le_bytes([s0, s1, s2, 0]);
        let kind = Kind::from_byte(kind_byte)
            .filter(|kind| kind.may_come_from(peer))
            .ok_or(WireError::UnexpectedKind(kind_byte))?;
        if !kind.permits_length(length) {
            return Err(WireError::BadLength {
                kind: kind_byte,
                length,
            });
        }
        let stream = match (kind, number) {
            (Kind::Hello, 0) => None,
            (Kind::Hello, number) => return Err(WireError::BadStream(number)),
            (_, number) => Some(StreamId::new(number)?),
        };
        Ok(Self {
            length,
            stream,
            kind,
        })
    }
}
