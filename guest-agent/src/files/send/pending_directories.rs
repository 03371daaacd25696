use alloc::vec::Vec;

use vmcell_wire::files::{Metadata, TreeRecord, record};

use crate::worker::{JobIo, JobResult};

/// The entered directories whose records were not sent yet. A directory that is not
/// selected itself is sent only when something in it is.
#[derive(Default)]
pub(super) struct PendingDirectories {
    /// The encoded records.
    records: Vec<u8>,
    /// The offset of each record.
    starts: Vec<usize>,
}

impl PendingDirectories {
    /// Enters a directory.
    pub(super) fn enter(&mut self, name: &[u8], meta: Metadata<'_>) -> JobResult<()> {
        let start = self.records.len();
        let meta = Some(meta);
        record::encode(&mut self.records, &TreeRecord::Enter { name, meta })?;
        self.starts.push(start);
        Ok(())
    }

    /// Sends all records.
    pub(super) fn send(&mut self, io: &mut JobIo) -> JobResult<()> {
        if !self.records.is_empty() {
            io.send(&self.records)?;
            self.records.clear();
            self.starts.clear();
        }
        Ok(())
    }

    /// Leaves the directory that was entered last.
    pub(super) fn leave(&mut self, io: &mut JobIo) -> JobResult<()> {
        match self.starts.pop() {
            Some(start) => {
                self.records.truncate(start);
                Ok(())
            }
            None => io.send_record(&TreeRecord::Leave),
        }
    }
}
