use vmcell_wire::files::{Meta, TreeRecord, record};

/// The directories that are open and were not told: one that was not asked for
/// is told only when something in it is.
#[derive(Default)]
pub(super) struct Directories {
    /// Their records.
    untold: Vec<u8>,
    /// Where each record begins.
    starts: Vec<usize>,
}

impl Directories {
    /// Goes into a directory.
    pub(super) fn enter(&mut self, name: &[u8], meta: Meta<'_>) {
        self.starts.push(self.untold.len());
        let meta = Some(meta);
        // A name and attributes are bounded, and together smaller than a
        // record.
        let encoded = record::encode(&mut self.untold, &TreeRecord::Enter { name, meta });
        debug_assert!(encoded.is_ok());
    }

    /// Leaves the one that was entered last. Answers whether that was told.
    pub(super) fn leave(&mut self) -> bool {
        match self.starts.pop() {
            Some(start) => {
                self.untold.truncate(start);
                false
            }
            None => true,
        }
    }

    /// Gives the records away: something follows.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.starts.clear();
        std::mem::take(&mut self.untold)
    }
}
