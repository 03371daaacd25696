use std::sync::mpsc::{Receiver as Queue, SyncSender, sync_channel};

use vmcell_wire::files::{
    TreeRecord,
    record::{self, HEADER},
};

use vmcell_tree::transfer::{Received, Receiver, TreeError};

use crate::{
    DiskError,
    content::{CHUNK_SIZE, at_most},
};

/// Number of chunks that can wait between the reading and the writing thread.
const QUEUE_LENGTH: usize = 4;

/// A chunk with less room than this is sent instead of filled.
const MIN_RAW_BYTES: usize = 4096;

/// Collects records and file contents in chunks, which another thread writes.
/// File contents are read directly into the chunk.
pub(super) struct ChunkWriter {
    chunk: Vec<u8>,
    queue: SyncSender<Option<Vec<u8>>>,
}

impl ChunkWriter {
    pub(super) fn new() -> (Self, Queue<Option<Vec<u8>>>) {
        let (queue, chunks) = sync_channel(QUEUE_LENGTH);
        let chunk = Vec::with_capacity(CHUNK_SIZE);
        (Self { chunk, queue }, chunks)
    }

    pub(super) fn record(&mut self, message: &TreeRecord<'_>) -> Result<(), TreeError> {
        let encoded = record::encode(&mut self.chunk, message);
        // Names, targets and attributes are bounded: together they fit into a
        // record.
        encoded.map_err(|_| TreeError::NotTransferable {
            path: "something".to_owned(),
            reason: "it does not fit into a record".to_owned(),
        })?;
        self.flush_if_full(0)
    }

    /// Appends encoded records.
    pub(super) fn records(&mut self, records: &[u8]) -> Result<(), TreeError> {
        self.chunk.extend_from_slice(records);
        self.flush_if_full(0)
    }

    /// Appends at most `most` bytes of file contents. `read` fills the buffer
    /// or the start of it, and returns the number of bytes, which is returned.
    pub(super) fn raw(
        &mut self,
        most: u64,
        read: impl FnOnce(&mut [u8]) -> Result<usize, DiskError>,
    ) -> Result<u64, DiskError> {
        self.flush_if_full(HEADER + MIN_RAW_BYTES)?;
        let start = self.chunk.len();
        let begin = start + HEADER;
        let length = at_most(most, CHUNK_SIZE.saturating_sub(begin));
        self.chunk.resize(begin + length, 0);
        let count = read(self.chunk.get_mut(begin..).unwrap_or_default())?;
        self.chunk.truncate(begin + count);
        // A chunk is far smaller than the maximum length in a header.
        let header = record::raw_header(count).unwrap_or_default();
        if let Some(place) = self.chunk.get_mut(start..begin) {
            place.copy_from_slice(&header);
        }
        Ok(count as u64)
    }

    /// Sends the last chunk and marks the tree as complete.
    pub(super) fn finish(mut self) -> Result<(), TreeError> {
        self.flush()?;
        self.queue.send(None).map_err(|_| TreeError::Aborted)
    }

    /// Sends the chunk unless it has room for `more` bytes.
    fn flush_if_full(&mut self, more: usize) -> Result<(), TreeError> {
        if self.chunk.len() + more < CHUNK_SIZE {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), TreeError> {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_SIZE));
        self.queue.send(Some(chunk)).map_err(|_| TreeError::Aborted)
    }
}

/// Runs the writing thread. A queue that closes without the end marker means an
/// unfinished tree.
pub(super) fn receive(
    mut receiver: Receiver<'_>,
    queue: Queue<Option<Vec<u8>>>,
) -> Result<Received, TreeError> {
    for chunk in queue {
        match chunk {
            Some(chunk) => receiver.push(&chunk)?,
            None => return receiver.finish(),
        }
    }
    Err(TreeError::Aborted)
}
