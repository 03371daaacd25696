use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use super::{
    DiskError, DiskLimits, DiskOptions,
    accounts::Accounts,
    budget::Budget,
    ext4::{self, Ext4, Info},
    image::{Image, Layer, partition},
    read_at::ReadAt as _,
};

/// A disk that no VM uses, open for reading.
///
/// Paths start at the root of its file system, with or without a slash in
/// front; neither `..` nor a symlink leads out of it. Entries are told with
/// paths relative to the root, as a guest's [`Files`](vmcell_tree::Files) do.
///
/// Several threads may read at the same time. While it is open, QEMU refuses to
/// start a VM that would write it.
pub struct Disk {
    pub(super) image: Arc<Image>,
    /// Where in the image the file system begins.
    pub(super) start: u64,
    /// How much of the image it may have.
    pub(super) length: u64,
    pub(super) ext4: Ext4,
    limits: DiskLimits,
    accounts: OnceLock<Accounts>,
}

impl Disk {
    /// Opens a disk for reading: a raw or qcow2 image, with an ext2, ext3 or
    /// ext4 file system.
    ///
    /// Its format is told by its first bytes. A raw disk that a guest has
    /// written must be opened as such: see [`DiskOptions::format`].
    ///
    /// # Errors
    /// See [`DiskOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DiskError> {
        Self::options().open(path)
    }

    /// Opens a disk in another way.
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

    pub(super) fn with(path: &Path, options: &DiskOptions) -> Result<Self, DiskError> {
        let image = Arc::new(Image::open(path, &options.image)?);
        let part = partition::select(Arc::clone(&image), options.partition)?;
        let mut limits = ext4::Limits::default();
        limits.time = options.limits.time;
        let how = ext4::Options {
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
            ext4: Ext4::open(part, how).map_err(DiskError::FileSystem)?,
            limits: options.limits,
            accounts: OnceLock::new(),
        })
    }

    /// What the file system says about itself.
    pub fn info(&self) -> Info {
        self.ext4.info()
    }

    /// How many bytes the whole disk shows, all partitions included.
    pub fn size(&self) -> u64 {
        self.image.size()
    }

    /// The files that the disk consists of, top first.
    ///
    /// # Errors
    /// [`DiskError::Read`]: the system does not tell about one of them.
    pub fn layers(&self) -> Result<Vec<Layer>, DiskError> {
        self.image.layers().map_err(|source| DiskError::Read {
            path: "the image".to_owned(),
            source,
        })
    }

    /// The partitions of the disk; none if its file system is all of it.
    ///
    /// # Errors
    /// [`DiskError::Partition`] if the disk cannot be read.
    pub fn partitions(&self) -> Result<Vec<partition::Partition>, DiskError> {
        partition::partitions(&self.image).map_err(|error| DiskError::Partition(error.into()))
    }

    /// The file system itself, for what is not offered here.
    pub fn file_system(&self) -> &Ext4 {
        &self.ext4
    }

    /// The image itself.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What a new operation may do.
    pub(super) fn budget(&self) -> Budget {
        Budget::new(self.limits)
    }

    /// The names of users and groups that the disk itself has.
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
