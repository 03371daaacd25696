use alloc::vec::Vec;

use vmcell_wire::files::{Meta, TreeRecord, record};

use crate::worker::{JobIo, JobResult};

/// The directories that a tree's sender is in, as far as they were not told:
/// one that was not asked for is told only when something in it is.
#[derive(Default)]
pub(super) struct PendingDirectories {
    /// Their records.
    records: Vec<u8>,
    /// Where each record begins.
    starts: Vec<usize>,
}

impl PendingDirectories {
    /// Goes into a directory.
    pub(super) fn enter(&mut self, name: &[u8], meta: Meta<'_>) -> JobResult<()> {
        let start = self.records.len();
        let meta = Some(meta);
        record::encode(&mut self.records, &TreeRecord::Enter { name, meta })?;
        self.starts.push(start);
        Ok(())
    }

    /// Tells them all: something follows.
    pub(super) fn send(&mut self, io: &mut JobIo) -> JobResult<()> {
        if !self.records.is_empty() {
            io.send(&self.records)?;
            self.records.clear();
            self.starts.clear();
        }
        Ok(())
    }

    /// Leaves the one that was entered last.
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
