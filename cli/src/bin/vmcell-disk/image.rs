//! Options for opening images, and limits for reading them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum, value_parser};
use vmcell::disk::{
    Disk, DiskError, DiskLimits,
    image::{Format, Layer, OpenOptions},
};
use vmcell_cli::{options::size, show::name};
use vmcell_rootfs::Cache;

use crate::failure::report;

#[derive(Debug, Args)]
#[command(next_help_heading = "Image options")]
pub(crate) struct ImageOptions {
    /// Format of the image. Default: detected from its first bytes. Always set
    /// `raw` for a raw disk that a guest has written, which could be made to
    /// look like qcow2.
    #[arg(long)]
    format: Option<ImageFormat>,
    /// Number of the partition to read. Default: the whole disk, or the only
    /// partition with a file system.
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Only follow backing files in this directory and below. Can be repeated.
    /// Default: the image's own directory and vmcell's environments.
    #[arg(long, value_name = "DIR")]
    allow_backing: Vec<PathBuf>,
    /// Read the disk even if a running VM may be writing to it. The data may be
    /// inconsistent and look damaged.
    #[arg(long, visible_alias = "in-use")]
    torn: bool,
    #[command(flatten)]
    file_system: FileSystemOptions,
}

/// Options that only matter for reading a file system.
#[derive(Debug, Args)]
struct FileSystemOptions {
    /// Ignore wrong checksums, and read inodes that the kernel would reject. The
    /// data may be garbage.
    #[arg(long, hide_short_help = true)]
    ignore_checksums: bool,
    /// Do not replay the journal. The data may be inconsistent.
    #[arg(long, hide_short_help = true)]
    ignore_journal: bool,
    /// Use the first intact backup of the superblock.
    #[arg(long, hide_short_help = true)]
    backup_superblock: bool,
    /// Maximum number of entries to visit. Default: 10000000.
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit_entries: Option<u64>,
    /// Maximum depth of nested directories. Default: 256.
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit_depth: Option<usize>,
    /// Maximum amount of file data to read, in bytes or with a suffix (k, m,
    /// g). Default: 1024g.
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = size::parse)]
    limit_bytes: Option<u64>,
    /// Maximum run time in seconds. Default: 600.
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    limit_time: Option<u64>,
    /// Maximum memory for names, links and differences. Default: 64m.
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = size::parse)]
    limit_memory: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ImageFormat {
    Raw,
    Qcow2,
}

impl From<ImageFormat> for Format {
    fn from(format: ImageFormat) -> Self {
        match format {
            ImageFormat::Raw => Self::Raw,
            ImageFormat::Qcow2 => Self::Qcow2,
        }
    }
}

impl ImageOptions {
    /// Opens a disk.
    pub(crate) fn open(&self, path: &Path) -> Result<Disk, DiskError> {
        let mut options = Disk::options().limits(self.limits());
        if let Some(format) = self.format {
            options = options.format(format.into());
        }
        if let Some(index) = self.partition {
            options = options.partition(index);
        }
        for folder in self.backing_directories(path) {
            options = options.allow_backing(folder);
        }
        if self.torn {
            options = options.allow_in_use();
        }
        if self.file_system.ignore_checksums {
            options = options.ignore_checksums();
        }
        if self.file_system.ignore_journal {
            options = options.ignore_journal();
        }
        if self.file_system.backup_superblock {
            options = options.backup_superblock();
        }
        let disk = options.open(path)?;
        warn_if_corrupt(&disk.layers()?);
        Ok(disk)
    }

    /// Returns options to open an image without reading its file system.
    pub(crate) fn image_options(&self, path: &Path) -> OpenOptions {
        let mut options = OpenOptions::new().allow_in_use(self.torn);
        if let Some(format) = self.format {
            options = options.format(format.into());
        }
        let backing_directories = self.backing_directories(path).into_iter();
        backing_directories.fold(options, OpenOptions::allow_backing)
    }

    /// Returns the directories in which the backing files of an image may be.
    fn backing_directories(&self, image: &Path) -> Vec<PathBuf> {
        if !self.allow_backing.is_empty() {
            return self.allow_backing.clone();
        }
        let environments = Cache::user().map(|cache| cache.folder().to_owned());
        let environments = environments.ok().filter(|folder| folder.is_dir());
        // The image's own directory. If the image cannot be found, opening
        // fails.
        let own = image.canonicalize();
        let own = own
            .ok()
            .and_then(|image| image.parent().map(Path::to_owned));
        own.into_iter().chain(environments).collect()
    }

    /// Returns the maximum number of entries, if it was given.
    pub(crate) fn limit_entries(&self) -> Option<u64> {
        self.file_system.limit_entries
    }

    /// Returns the maximum number of bytes, if it was given.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.file_system.limit_bytes
    }

    pub(crate) fn limits(&self) -> DiskLimits {
        let options = &self.file_system;
        let mut limits = DiskLimits::default();
        limits.entries = options.limit_entries.unwrap_or(limits.entries);
        limits.depth = options.limit_depth.unwrap_or(limits.depth);
        limits.bytes = options.limit_bytes.unwrap_or(limits.bytes);
        limits.time = options.limit_time.map_or(limits.time, Duration::from_secs);
        if let Some(bytes) = options.limit_memory {
            limits.memory = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        limits
    }
}

/// Prints a warning for each layer that QEMU has marked as corrupt.
pub(crate) fn warn_if_corrupt(layers: &[Layer]) {
    for layer in layers.iter().filter(|layer| layer.corrupt) {
        let path = name::printable(&layer.path);
        report(&format!(
            "warning: {path} is marked as corrupt, so that a part of the data may be wrong: \
             `qemu-img check -r all` repairs it"
        ));
    }
}

/// Returns a path on a disk as an absolute path, without `.` and with single
/// slashes.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    Path::new("/").join(path).components().collect()
}
