use std::time::Duration;

/// How to take a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct SnapshotOptions {
    pub(crate) compress: bool,
    pub(crate) end_vm: bool,
}

impl SnapshotOptions {
    /// The VM goes on, and the files are not compressed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses the files with zstd. They take a fifth of the space or less, and
    /// longer to write and to restore. The VM does not wait for it.
    pub fn compress(mut self, compress: bool) -> Self {
        self.compress = compress;
        self
    }

    /// Ends the VM when the snapshot is written. If it cannot be written, the VM goes on.
    pub fn end_vm(mut self, end_vm: bool) -> Self {
        self.end_vm = end_vm;
        self
    }
}

/// What a snapshot has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotReport {
    /// How long the processors of the VM stood still.
    pub pause: Duration,
    /// How many bytes it takes on the disk.
    pub bytes: u64,
}
