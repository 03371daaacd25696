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

/// How large a piece is at most: what fits into a frame.
pub(super) const PIECE: usize = MAX_PAYLOAD as usize;

/// With less room than this a piece is sent instead of filled up.
const WORTHWHILE: usize = 4096;

/// Nobody takes the pieces any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Takes the pieces of a stream, and waits until there is room for each.
pub type Sink<'s> = &'s mut dyn FnMut(Bytes) -> Result<(), Gone>;

/// Gathers records and bytes of files into pieces. Bytes of files are read
/// straight into them.
pub(super) struct Packer<'s> {
    piece: Vec<u8>,
    sink: Sink<'s>,
}

impl<'s> Packer<'s> {
    pub(super) fn new(sink: Sink<'s>) -> Self {
        Self {
            piece: Vec::with_capacity(PIECE),
            sink,
        }
    }

    pub(super) fn record(&mut self, record: &TreeRecord<'_>) -> Result<(), WireOrGone> {
        let start = self.piece.len();
        record::encode(&mut self.piece, record)?;
        if self.piece.len() > PIECE {
            let last = self.piece.split_off(start);
            self.flush()?;
            self.piece.extend_from_slice(&last);
        }
        Ok(())
    }

    /// Raw bytes: `fill` appends at most as many as it is told. Tells how many
    /// there were.
    pub(super) fn raw(
        &mut self,
        most: u64,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> Result<(), TreeError>,
    ) -> Result<u64, TreeError> {
        if PIECE - self.piece.len() < HEADER + WORTHWHILE {
            self.flush()?;
        }
        let start = self.piece.len();
        let begin = start + HEADER;
        self.piece.resize(begin, 0);
        let room = PIECE - begin;
        let most = usize::try_from(most).unwrap_or(room).min(room);
        fill(&mut self.piece, most)?;
        self.piece.truncate(begin + most);

        let count = self.piece.len() - begin;
        if count == 0 {
            self.piece.truncate(start);
            return Ok(0);
        }
        // A piece is far smaller than what a header can say.
        let header = record::raw_header(count).unwrap_or_default();
        if let Some(place) = self.piece.get_mut(start..begin) {
            place.copy_from_slice(&header);
        }
        Ok(count as u64)
    }

    pub(super) fn flush(&mut self) -> Result<(), Gone> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        (self.sink)(Bytes::from(piece))
    }
}

/// Why a record could not be sent.
pub(super) enum WireOrGone {
    /// It is too large.
    Wire,
    /// Nobody takes it.
    Gone,
}

impl From<WireError> for WireOrGone {
    fn from(_: WireError) -> Self {
        Self::Wire
    }
}

impl From<Gone> for WireOrGone {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Gone> for TreeError {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}
