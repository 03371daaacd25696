//! Records: framing of messages and raw bytes on one channel.
//!
//! ```text
//! byte    0          4
//!         +----------+----------------------+
//!         | length   | message or bytes     |
//!         | u32 le   | `length` bytes       |
//!         +----------+----------------------+
//!
//! length  bit 31: raw bytes, else a postcard message of at most MAX_RECORD
//! ```
//!
//! This is independent of frames, for which a channel is a stream of bytes.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{error::WireError, limits::MAX_RECORD, message::message};

/// The size of a record's header, in bytes.
pub const HEADER: usize = 4;

const RAW: u32 = 1 << 31;

/// Appends a message.
///
/// # Errors
/// [`WireError::TooLarge`]; `out` is then unchanged.
pub fn encode<T: Serialize>(out: &mut Vec<u8>, message: &T) -> Result<(), WireError> {
    let size = postcard::experimental::serialized_size(message).map_err(|_| WireError::TooLarge)?;
    if size > MAX_RECORD {
        return Err(WireError::TooLarge);
    }
    let length = u32::try_from(size).map_err(|_| WireError::TooLarge)?;
    out.extend_from_slice(&length.to_le_bytes());
    let start = out.len();
    out.resize(start.saturating_add(size), 0);
    let payload = out.get_mut(start..).unwrap_or_default();
    postcard::to_slice(message, payload)
        .map(|_| ())
        .map_err(|_| WireError::TooLarge)
}

/// Returns the header for `length` raw bytes.
///
/// # Errors
/// [`WireError::TooLarge`] for 2 GiB or more.
pub fn raw_header(length: usize) -> Result<[u8; HEADER], WireError> {
    match u32::try_from(length) {
        Ok(length) if length & RAW == 0 => Ok((length | RAW).to_le_bytes()),
        _ => Err(WireError::TooLarge),
    }
}

/// Decodes a message.
///
/// # Errors
/// [`WireError::Malformed`].
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, WireError> {
    message(bytes)
}

/// Turns the bytes of a channel, in pieces of any size, into records.
///
/// It does no I/O and buffers at most one incomplete message.
#[derive(Debug, Default)]
pub struct Reader {
    header: [u8; HEADER],
    /// How many bytes of the header have arrived.
    arrived: usize,
    held: Vec<u8>,
    raw: u32,
}

/// A message or raw bytes, as read from a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole message, for [`decode`].
    Message(&'a [u8]),
    /// Raw bytes, at least one; more may follow.
    Raw(&'a [u8]),
}

impl Reader {
    /// Creates a reader at the beginning of a channel.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            header: [0; HEADER],
            arrived: 0,
            held: Vec::new(),
            raw: 0,
        }
    }

    /// Takes bytes off the front of `input` until there is a piece. Returns
    /// `None` if it took all input and needs more.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if a message claims to exceed [`MAX_RECORD`].
    pub fn next<'r, 'i: 'r>(
        &'r mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Piece<'r>>, WireError> {
        loop {
            if self.raw > 0 {
                let bytes = take_up_to(input, size(self.raw));
                let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                self.raw = self.raw.saturating_sub(count);
                return Ok((!bytes.is_empty()).then_some(Piece::Raw(bytes)));
            }
            let Some(length) = self.take_header(input) else {
                return Ok(None);
            };
            if length & RAW != 0 {
                self.raw = length & !RAW;
                self.arrived = 0;
                continue;
            }
            let length = size(length);
            if length > MAX_RECORD {
                return Err(WireError::TooLarge);
            }
            if self.held.is_empty()
                && let Some((message, rest)) = input.split_at_checked(length)
            {
                *input = rest;
                self.arrived = 0;
                return Ok(Some(Piece::Message(message)));
            }
            let missing = length.saturating_sub(self.held.len());
            self.held.extend_from_slice(take_up_to(input, missing));
            if self.held.len() < length {
                return Ok(None);
            }
            self.arrived = 0;
            return Ok(Some(Piece::Message(&self.held)));
        }
    }

    /// Returns whether the channel may end here: between two records.
    #[must_use]
    pub fn is_between_records(&self) -> bool {
        self.arrived == 0 && self.raw == 0
    }

    fn take_header(&mut self, input: &mut &[u8]) -> Option<u32> {
        if self.arrived == 0 {
            // No piece borrows from it any more.
            self.held.clear();
        }
        let missing = HEADER.saturating_sub(self.arrived);
        let bytes = take_up_to(input, missing);
        for (place, byte) in self.header.iter_mut().skip(self.arrived).zip(bytes) {
            *place = *byte;
        }
        self.arrived = self.arrived.saturating_add(bytes.len());
        (self.arrived == HEADER).then_some(u32::from_le_bytes(self.header))
    }
}

fn take_up_to<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at_checked(count).unwrap_or((input, &[]));
    *input = rest;
    taken
}

fn size(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
