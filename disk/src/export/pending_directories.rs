use vmcell_wire::files::{Metadata, TreeRecord, record};

/// The open directories for which no record was sent yet. The record of a
/// directory that is not selected itself is sent only when something in it is.
#[derive(Default)]
pub(super) struct PendingDirectories {
    /// Their encoded records.
    records: Vec<u8>,
    /// The offset of each record.
    starts: Vec<usize>,
}

impl PendingDirectories {
    /// Adds a directory that was entered.
    pub(super) fn enter(&mut self, name: &[u8], meta: Metadata<'_>) {
        self.starts.push(self.records.len());
        let meta = Some(meta);
        // A name and attributes are bounded: together they fit into a record.
        let encoded = record::encode(&mut self.records, &TreeRecord::Enter { name, meta });
        debug_assert!(encoded.is_ok());
    }

    /// Leaves the directory that was entered last. Returns whether its record
    /// was sent.
    pub(super) fn leave(&mut self) -> bool {
        match self.starts.pop() {
            Some(start) => {
                self.records.truncate(start);
                false
            }
            None => true,
        }
    }

    /// Returns the pending records, to be sent before what follows.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.starts.clear();
        std::mem::take(&mut self.records)
    }
}
