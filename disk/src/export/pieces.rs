use std::sync::mpsc::{Receiver as Queue, SyncSender, sync_channel};

use vmcell_wire::files::{
    TreeRecord,
    record::{self, HEADER},
};

use vmcell_tree::transfer::{Received, Receiver, TreeError};

use crate::{
    DiskError,
    content::{PIECE, at_most},
};

/// So many pieces wait between who reads and who writes.
const QUEUED: usize = 4;

/// With less room than this a piece is sent instead of filled up.
const WORTHWHILE: usize = 4096;

/// Gathers records and bytes of files into pieces, which another thread writes
/// meanwhile. Bytes of files are read straight into them.
pub(super) struct Pieces {
    piece: Vec<u8>,
    queue: SyncSender<Option<Vec<u8>>>,
}

impl Pieces {
    pub(super) fn new() -> (Self, Queue<Option<Vec<u8>>>) {
        let (queue, pieces) = sync_channel(QUEUED);
        let piece = Vec::with_capacity(PIECE);
        (Self { piece, queue }, pieces)
    }

    pub(super) fn record(&mut self, message: &TreeRecord<'_>) -> Result<(), TreeError> {
        let encoded = record::encode(&mut self.piece, message);
        // Names, targets and attributes are bounded, and together smaller than
        // a record.
        encoded.map_err(|_| TreeError::NotTransferable {
            path: "something".to_owned(),
            reason: "it does not fit into a record".to_owned(),
        })?;
        self.flush_if_full(0)
    }

    /// Records that are ready.
    pub(super) fn records(&mut self, records: &[u8]) -> Result<(), TreeError> {
        self.piece.extend_from_slice(records);
        self.flush_if_full(0)
    }

    /// Raw bytes, at most so many: `read` fills what it is given, or the
    /// beginning of it. Tells how many there were.
    pub(super) fn raw(
        &mut self,
        most: u64,
        read: impl FnOnce(&mut [u8]) -> Result<usize, DiskError>,
    ) -> Result<u64, DiskError> {
        self.flush_if_full(HEADER + WORTHWHILE)?;
        let start = self.piece.len();
        let begin = start + HEADER;
        let length = at_most(most, PIECE.saturating_sub(begin));
        self.piece.resize(begin + length, 0);
        let count = read(self.piece.get_mut(begin..).unwrap_or_default())?;
        self.piece.truncate(begin + count);
        // A piece is far smaller than what a header can say.
        let header = record::raw_header(count).unwrap_or_default();
        if let Some(place) = self.piece.get_mut(start..begin) {
            place.copy_from_slice(&header);
        }
        Ok(count as u64)
    }

    /// The tree is complete.
    pub(super) fn finish(mut self) -> Result<(), TreeError> {
        self.flush()?;
        self.queue.send(None).map_err(|_| TreeError::Aborted)
    }

    /// Sends the piece if it has no room for so much more.
    fn flush_if_full(&mut self, more: usize) -> Result<(), TreeError> {
        if self.piece.len() + more < PIECE {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), TreeError> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.queue.send(Some(piece)).map_err(|_| TreeError::Aborted)
    }
}

/// What the writing thread does. A queue that ends without a word ends an
/// unfinished tree.
pub(super) fn receive(
    mut receiver: Receiver<'_>,
    queue: Queue<Option<Vec<u8>>>,
) -> Result<Received, TreeError> {
    for piece in queue {
        match piece {
            Some(piece) => receiver.push(&piece)?,
            None => return receiver.finish(),
        }
    }
    Err(TreeError::Aborted)
}
