use bytes::Bytes;
use vmcell_wire::{
    WireError,
    files::{
        TreeRecord,
        record::{self, HEADER},
    },
    limits::MAX_PAYLOAD,
};

use crate::transfer::TreeError;

/// The largest size of a piece, which fits into one frame.
pub(super) const PIECE_SIZE: usize = MAX_PAYLOAD as usize;

/// A piece with less room than this is sent instead of filled up.
const MIN_RAW_BYTES: usize = 4096;

/// The sink accepts no more pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkClosed;

/// Takes the pieces of a stream. It blocks until there is room for each.
pub type Sink<'s> = &'s mut dyn FnMut(Bytes) -> Result<(), SinkClosed>;

/// Collects records and bytes of files into pieces. Bytes of files are read
/// directly into them.
pub(super) struct Packer<'s> {
    piece: Vec<u8>,
    sink: Sink<'s>,
}

impl<'s> Packer<'s> {
    pub(super) fn new(sink: Sink<'s>) -> Self {
        Self {
            piece: Vec::with_capacity(PIECE_SIZE),
            sink,
        }
    }

    pub(super) fn record(&mut self, record: &TreeRecord<'_>) -> Result<(), SendError> {
        let start = self.piece.len();
        record::encode(&mut self.piece, record)?;
        if self.piece.len() > PIECE_SIZE {
            let last = self.piece.split_off(start);
            self.flush()?;
            self.piece.extend_from_slice(&last);
        }
        Ok(())
    }

    /// Adds raw bytes: `fill` appends at most as many as its second argument.
    /// Returns how many there were.
    pub(super) fn raw(
        &mut self,
        max: u64,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> Result<(), TreeError>,
    ) -> Result<u64, TreeError> {
        if PIECE_SIZE - self.piece.len() < HEADER + MIN_RAW_BYTES {
            self.flush()?;
        }
        let start = self.piece.len();
        let begin = start + HEADER;
        self.piece.resize(begin, 0);
        let room = PIECE_SIZE - begin;
        let max = usize::try_from(max).unwrap_or(room).min(room);
        fill(&mut self.piece, max)?;
        self.piece.truncate(begin + max);

        let count = self.piece.len() - begin;
        if count == 0 {
            self.piece.truncate(start);
            return Ok(0);
        }
        // A piece is much smaller than the limit of a header.
        let header = record::raw_header(count).unwrap_or_default();
        if let Some(place) = self.piece.get_mut(start..begin) {
            place.copy_from_slice(&header);
        }
        Ok(count as u64)
    }

    pub(super) fn flush(&mut self) -> Result<(), SinkClosed> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_SIZE));
        (self.sink)(Bytes::from(piece))
    }
}

/// Why a record could not be sent.
pub(super) enum SendError {
    /// The record is too large.
    TooLarge,
    /// The sink is closed.
    SinkClosed,
}

impl From<WireError> for SendError {
    fn from(_: WireError) -> Self {
        Self::TooLarge
    }
}

impl From<SinkClosed> for SendError {
    fn from(_: SinkClosed) -> Self {
        Self::SinkClosed
    }
}

impl From<SinkClosed> for TreeError {
    fn from(_: SinkClosed) -> Self {
        Self::Aborted
    }
}
