use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use super::{
    DiskError, DiskLimits, DiskOptions,
    accounts::Accounts,
    budget::Budget,
    ext4::{self, Damage, Ext4, Info},
    image::{Image, Layer, partition},
    read_at::ReadAt as _,
};

/// A disk image with an ext2, ext3 or ext4 file system, opened for reading.
///
/// Paths are relative to the root of the file system, with or without a leading
/// slash. Neither `..` nor a symlink leads out of it. Returned entries have
/// paths relative to the root, without a leading slash, like those of `Files`
/// in the crate `vmcell`.
///
/// A disk can be read from several threads at once. While it is open, its image
/// is locked: QEMU refuses to start a VM that would write to it.
pub struct Disk {
    pub(super) image: Arc<Image>,
    /// Byte offset of the file system in the image.
    pub(super) start: u64,
    /// Number of bytes from there that belong to it.
    pub(super) length: u64,
    pub(super) ext4: Ext4,
    limits: DiskLimits,
    accounts: OnceLock<Accounts>,
}

impl Disk {
    /// Opens a raw or qcow2 image that contains an ext2, ext3 or ext4 file
    /// system.
    ///
    /// The format is detected from the first bytes. A guest can make its raw
    /// disk look like a qcow2 image, so set the format of any raw disk that a
    /// guest has written: see [`DiskOptions::format`].
    ///
    /// # Errors
    /// See [`DiskOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DiskError> {
        Self::options().open(path)
    }

    /// Returns options for opening a disk, for example with a given format or
    /// partition.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), vmcell_disk::DiskError> {
    /// use vmcell_disk::{Disk, image::Format};
    ///
    /// let disk = Disk::options()
    ///     .format(Format::Raw)
    ///     .partition(1)
    ///     .open("stopped.img")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn options() -> DiskOptions {
        DiskOptions::default()
    }

    pub(super) fn open_with(path: &Path, options: &DiskOptions) -> Result<Self, DiskError> {
        let image = Arc::new(Image::open(path, options.image.clone())?);
        let part = partition::select(Arc::clone(&image), options.partition)?;
        let mut limits = ext4::Limits::default();
        limits.time = options.limits.time;
        let ext4_options = ext4::Options {
            limits,
            checksums: options.checksums,
            replay: options.replay,
            superblock: options.superblock,
            ..ext4::Options::default()
        };
        Ok(Self {
            image,
            start: part.start(),
            length: part.size(),
            ext4: Ext4::open(part, ext4_options).map_err(DiskError::FileSystem)?,
            limits: options.limits,
            accounts: OnceLock::new(),
        })
    }

    /// Returns the properties of the file system from its superblock.
    pub fn info(&self) -> Info {
        self.ext4.info()
    }

    /// Returns damage for which the kernel would refuse to mount the file
    /// system, although files can be read: see [`Ext4::damage`].
    pub fn damage(&self) -> &[Damage] {
        self.ext4.damage()
    }

    /// Returns the size of the whole disk in bytes, all partitions included.
    pub fn size(&self) -> u64 {
        self.image.size()
    }

    /// Returns the image files that make up the disk: the top layer first, then
    /// its backing files.
    ///
    /// # Errors
    /// [`DiskError::Read`] if the metadata of one of the files cannot be read.
    pub fn layers(&self) -> Result<Vec<Layer>, DiskError> {
        self.image.layers().map_err(|source| DiskError::Read {
            path: "the image".to_owned(),
            source,
        })
    }

    /// Returns the partitions of the disk. The list is empty if the disk has no
    /// partition table.
    ///
    /// # Errors
    /// [`DiskError::Partition`] if the disk cannot be read.
    pub fn partitions(&self) -> Result<Vec<partition::Partition>, DiskError> {
        partition::partitions(&self.image).map_err(|error| DiskError::Partition(error.into()))
    }

    /// Returns the ext4 reader, for access to inodes and blocks.
    pub fn file_system(&self) -> &Ext4 {
        &self.ext4
    }

    /// Returns the image.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Returns the budget of a new operation.
    pub(super) fn budget(&self) -> Budget {
        Budget::new(self.limits)
    }

    /// Returns the user and group names from the disk, which are read on first
    /// use.
    pub(super) fn accounts(&self) -> &Accounts {
        self.accounts.get_or_init(|| Accounts::read(self))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("start", &self.start)
            .field("ext4", &self.ext4)
            .finish_non_exhaustive()
    }
}
