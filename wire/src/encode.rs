//! Encodes frames.
//!
//! Control frames are appended to a buffer that the caller sends. For data
//! frames only the header is encoded: the caller sends the payload without a copy.

use alloc::vec::Vec;

use serde::Serialize;

use crate::{
    error::WireError,
    event::Event,
    frame::{Channel, Header, Kind, StreamId},
    hello::Hello,
    limits::MAX_PAYLOAD,
    outcome::Outcome,
    request::Request,
};

/// Appends a [`Hello`].
///
/// # Errors
/// See [`open`].
pub fn hello(out: &mut Vec<u8>, hello: &Hello<'_>) -> Result<(), WireError> {
    message(out, None, Kind::Hello, hello)
}

/// Appends the frame that opens a stream.
///
/// # Errors
/// [`WireError::TooLarge`] if the request does not fit in one frame. `out` is
/// then unchanged.
pub fn open(out: &mut Vec<u8>, stream: StreamId, request: &Request<'_>) -> Result<(), WireError> {
    message(out, Some(stream), Kind::Open, request)
}

/// Appends an event of a stream.
///
/// # Errors
/// See [`open`].
pub fn event(out: &mut Vec<u8>, stream: StreamId, event: &Event<'_>) -> Result<(), WireError> {
    message(out, Some(stream), Kind::Event, event)
}

/// Appends the end of a stream.
///
/// # Errors
/// See [`open`].
pub fn close(out: &mut Vec<u8>, stream: StreamId, outcome: &Outcome<'_>) -> Result<(), WireError> {
    message(out, Some(stream), Kind::Close, outcome)
}

/// Appends the end of a stream, with an outcome that is encoded already.
///
/// # Errors
/// See [`open`].
pub fn close_with_payload(
    out: &mut Vec<u8>,
    stream: StreamId,
    payload: &[u8],
) -> Result<(), WireError> {
    encoded(out, stream, Kind::Close, payload)
}

/// Appends an event of a stream that is encoded already.
///
/// # Errors
/// See [`open`].
pub fn event_with_payload(
    out: &mut Vec<u8>,
    stream: StreamId,
    payload: &[u8],
) -> Result<(), WireError> {
    encoded(out, stream, Kind::Event, payload)
}

/// Appends the frame with which the host cancels a stream.
pub fn cancel(out: &mut Vec<u8>, stream: StreamId) {
    empty_frame(out, stream, Kind::Cancel);
}

/// Appends the frame with which the host acknowledges the outcome of a stream.
pub fn ack(out: &mut Vec<u8>, stream: StreamId) {
    empty_frame(out, stream, Kind::Ack);
}

/// Appends the end of a channel.
pub fn end(out: &mut Vec<u8>, stream: StreamId, channel: Channel) {
    empty_frame(out, stream, Kind::End(channel));
}

/// Appends credit for a channel.
pub fn credit(out: &mut Vec<u8>, stream: StreamId, channel: Channel, bytes: u32) {
    let header = Header {
        length: 4,
        stream: Some(stream),
        kind: Kind::Credit(channel),
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
}

/// Returns the header of a data frame; `length` raw bytes must follow it.
///
/// # Errors
/// [`WireError::TooLarge`] if `length` is 0 or more than a frame can hold.
pub fn data_header(
    stream: StreamId,
    channel: Channel,
    length: usize,
) -> Result<[u8; Header::SIZE], WireError> {
    let header = Header {
        length: payload_length(length)?,
        stream: Some(stream),
        kind: Kind::Data(channel),
    };
    Ok(header.to_bytes())
}

/// Returns the length of a payload of raw bytes or of a message, neither of which
/// is empty.
fn payload_length(size: usize) -> Result<u32, WireError> {
    u32::try_from(size)
        .ok()
        .filter(|length| (1..=MAX_PAYLOAD).contains(length))
        .ok_or(WireError::TooLarge)
}

fn encoded(
    out: &mut Vec<u8>,
    stream: StreamId,
    kind: Kind,
    payload: &[u8],
) -> Result<(), WireError> {
    let header = Header {
        length: payload_length(payload.len())?,
        stream: Some(stream),
        kind,
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

fn empty_frame(out: &mut Vec<u8>, stream: StreamId, kind: Kind) {
    let header = Header {
        length: 0,
        stream: Some(stream),
        kind,
    };
    out.extend_from_slice(&header.to_bytes());
}

fn message(
    out: &mut Vec<u8>,
    stream: Option<StreamId>,
    kind: Kind,
    message: &impl Serialize,
) -> Result<(), WireError> {
    let size = postcard::experimental::serialized_size(message).map_err(|_| WireError::TooLarge)?;
    let header = Header {
        length: payload_length(size)?,
        stream,
        kind,
    };
    out.extend_from_slice(&header.to_bytes());
    let start = out.len();
    out.resize(start.saturating_add(size), 0);
    let payload = out.get_mut(start..).unwrap_or_default();
    postcard::to_slice(message, payload)
        .map(|_| ())
        .map_err(|_| WireError::TooLarge)
}
