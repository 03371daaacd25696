use std::path::{Path, PathBuf};

use super::{
    Disk, DiskError, DiskLimits,
    ext4::{Checksums, Replay, SuperblockCopy},
    image::{Format, OpenOptions},
};

/// Options for opening a disk. Returned by [`Disk::options`].
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
    /// Sets the format of the image instead of detecting it from the first
    /// bytes. Set it for every raw disk that a guest has written: the guest can
    /// make its raw disk look like a qcow2 image with a backing file of its
    /// choice.
    pub fn format(mut self, format: Format) -> Self {
        self.image = self.image.format(format);
        self
    }

    /// Allows backing files in this directory and below. Can be called several
    /// times. By default, only backing files in or below the image's own
    /// directory are opened.
    pub fn allow_backing(mut self, folder: impl Into<PathBuf>) -> Self {
        self.image = self.image.allow_backing(folder);
        self
    }

    /// Opens the disk even if a running VM may be writing to it. The data may
    /// then be inconsistent and look damaged.
    pub fn allow_in_use(mut self) -> Self {
        self.image = self.image.allow_in_use(true);
        self
    }

    /// Selects a partition by its number, as the kernel numbers them. By
    /// default, the file system on the whole disk is read, or the only
    /// partition that has one.
    pub fn partition(mut self, index: u32) -> Self {
        self.partition = Some(index);
        self
    }

    /// Sets the limits of each operation.
    pub fn limits(mut self, limits: DiskLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Ignores wrong metadata checksums, and reads inodes that the kernel would
    /// reject. The data may be garbage.
    pub fn ignore_checksums(mut self) -> Self {
        self.checksums = Checksums::Ignore;
        self
    }

    /// Does not replay the journal. The data may be inconsistent.
    pub fn ignore_journal(mut self) -> Self {
        self.replay = Replay::Never;
        self
    }

    /// Uses a backup of the superblock, for when the primary one is damaged.
    pub fn backup_superblock(mut self) -> Self {
        self.superblock = SuperblockCopy::Backup;
        self
    }

    /// Opens a disk.
    ///
    /// # Errors
    /// [`DiskError::Image`], [`DiskError::Partition`],
    /// [`DiskError::FileSystem`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Disk, DiskError> {
        Disk::open_with(path.as_ref(), self)
    }
}
