use core::fmt;

use crate::frame::Channel;

/// Why bytes violate the protocol, or a value cannot be sent.
///
/// After a decoding error the link is unusable: the position of the next frame
/// is unknown, or the peer violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The header's kind byte is unknown to this generation, or this peer may not
    /// send that kind.
    UnexpectedKind(u8),
    /// The stream id is zero where one is required, nonzero where none is
    /// allowed, or does not fit in 24 bits.
    BadStream(u32),
    /// The payload length is invalid for this kind of frame.
    BadLength {
        /// The kind byte of the frame.
        kind: u8,
        /// The payload length that its header claims.
        length: u32,
    },
    /// A control payload is not a well-formed message.
    Malformed,
    /// A message is larger than [`MAX_PAYLOAD`](crate::limits::MAX_PAYLOAD).
    TooLarge,
    /// More bytes came on a channel than there was credit for.
    Overrun(Channel),
    /// Credit was granted past [`MAX_WINDOW`](crate::limits::MAX_WINDOW).
    CreditOverflow(Channel),
    /// The first frame is not a hello of this protocol.
    NotVmcell,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedKind(kind) => write!(f, "unexpected frame kind {kind:#04x}"),
            Self::BadStream(id) => write!(f, "invalid stream id {id}"),
            Self::BadLength { kind, length } => {
                write!(f, "a frame of kind {kind:#04x} cannot have {length} bytes")
            }
            Self::Malformed => f.write_str("malformed message"),
            Self::TooLarge => f.write_str("the message does not fit in one frame"),
            Self::Overrun(channel) => write!(f, "more data on {channel:?} than was allowed"),
            Self::CreditOverflow(channel) => write!(f, "too much credit for {channel:?}"),
            Self::NotVmcell => f.write_str("the peer does not speak the vmcell protocol"),
        }
    }
}

impl core::error::Error for WireError {}
