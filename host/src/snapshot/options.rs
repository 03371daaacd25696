use std::time::Duration;

/// How to take a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct SnapshotOptions {
    pub(crate) compress: bool,
    pub(crate) end_vm: bool,
    pub(crate) leave_disk: bool,
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

    /// Does not copy the disk, which must be one that is [kept](crate::VmBuilder::disk), and
    /// [ends](Self::end_vm) the VM. The snapshot can be restored once, with that disk, and
    /// only as long as nobody has written to it:
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// use vmcell::{Vm, snapshot::SnapshotOptions};
    ///
    /// let options = SnapshotOptions::new().leave_disk(true);
    /// vm.snapshot_with("work/memory", options).await?;
    /// let restored = Vm::builder().snapshot("work/memory").disk("work/1.qcow2");
    /// let vm = restored.start().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave_disk(mut self, leave_disk: bool) -> Self {
        self.leave_disk = leave_disk;
        self.end_vm |= leave_disk;
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
