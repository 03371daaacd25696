use std::path::{Path, PathBuf};

use super::{
    Disk, DiskError, DiskLimits,
    ext4::{Checksums, Replay, SuperblockCopy},
    image::{Format, OpenOptions},
};

/// How a disk is opened: see [`Disk::options`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing happens before it is opened"]
pub struct DiskOptions {
    pub(super) image: OpenOptions,
    pub(super) partition: Option<u32>,
    pub(super) limits: DiskLimits,
    pub(super) checksums: Checksums,
    pub(super) replay: Replay,
    pub(super) superblock: SuperblockCopy,
}

impl DiskOptions {
    /// Says which format the image has, whatever its first bytes look like. Say
    /// it of every raw disk that a guest has written: a guest can make its raw
    /// disk look like a qcow2 file with a backing file of its choice.
    pub fn format(mut self, format: Format) -> Self {
        self.image = self.image.format(format);
        self
    }

    /// Allows backing files beneath this folder. Without it only those in the
    /// image's own folder are opened. Can be called many times.
    pub fn allow(mut self, folder: impl Into<PathBuf>) -> Self {
        self.image = self.image.allow(folder);
        self
    }

    /// Takes a look even if a running VM may write the disk. What is read may
    /// then be of different moments, and look damaged where nothing is.
    pub fn torn(mut self) -> Self {
        self.image = self.image.torn(true);
        self
    }

    /// Reads the file system of this partition, as the kernel counts them. If
    /// none is named it is the whole disk, or the only partition that has one.
    pub fn partition(mut self, index: u32) -> Self {
        self.partition = Some(index);
        self
    }

    /// How much one operation may do.
    pub fn limits(mut self, limits: DiskLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads on where checksums are wrong. What is found there may be nonsense.
    pub fn ignore_checksums(mut self) -> Self {
        self.checksums = Checksums::Ignore;
        self
    }

    /// Does not replay a journal that waits. What is read may be torn.
    pub fn ignore_journal(mut self) -> Self {
        self.replay = Replay::Never;
        self
    }

    /// Uses the copy of the superblock in the second group of blocks, if the
    /// first one is damaged.
    pub fn backup_superblock(mut self) -> Self {
        self.superblock = SuperblockCopy::Backup;
        self
    }

    /// Opens a disk for reading.
    ///
    /// # Errors
    /// [`DiskError::Image`], [`DiskError::Partition`],
    /// [`DiskError::FileSystem`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Disk, DiskError> {
        Disk::with(path.as_ref(), self)
    }
}
