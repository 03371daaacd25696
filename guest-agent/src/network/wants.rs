use alloc::vec::Vec;

use vmcell_wire::{files::record, network::Want};

/// What programs want, as records that are not sent to the host yet.
#[derive(Default)]
pub(super) struct Wants(Vec<u8>);

/// No more is added while there are so many bytes: programs that give up and try again
/// do not use up the guest's memory while the host does not read.
const MAX_UNSENT: usize = 256 * 1024;

impl Wants {
    /// Adds a record. Returns whether there was room.
    pub(super) fn add(&mut self, want: &Want<'_>) -> bool {
        self.0.len() < MAX_UNSENT && record::encode(&mut self.0, want).is_ok()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes bytes that were sent.
    pub(super) fn sent(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
    }
}
