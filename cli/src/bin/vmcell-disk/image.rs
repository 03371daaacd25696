//! How images are opened, and how much may be done with them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum, value_parser};
use vmcell::disk::{
    Disk, DiskError, DiskLimits,
    image::{Format, OpenOptions},
};
use vmcell_cli::options::size;
use vmcell_rootfs::Cache;

#[derive(Debug, Args)]
#[command(next_help_heading = "Options for images")]
pub(crate) struct ImageOptions {
    /// The format of the image. Without it, its first bytes tell. Say `raw` of
    /// each raw disk that a guest has written: it could look like a qcow2 file.
    #[arg(long)]
    format: Option<ImageFormat>,
    /// Read this partition, by its number. Without it, it is the whole disk, or
    /// the only partition that has a file system.
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Follow backing files to this folder and below it, and only there. Can be
    /// given many times. Without it, they must be in the image's own folder or
    /// among the environments that vmcell has made.
    #[arg(long, value_name = "DIR")]
    allow_backing: Vec<PathBuf>,
    /// Take a look even if a running VM may write the disk. What is read may then
    /// be of different moments, and look damaged where nothing is.
    #[arg(long, visible_alias = "in-use")]
    torn: bool,
    #[command(flatten)]
    reading: ReadingOptions,
}

/// What only those need who read a file system.
#[derive(Debug, Args)]
struct ReadingOptions {
    /// Read on where checksums are wrong. What is found there may be nonsense.
    #[arg(long, hide_short_help = true)]
    ignore_checksums: bool,
    /// Do not replay a journal that waits. What is read may be torn.
    #[arg(long, hide_short_help = true)]
    ignore_journal: bool,
    /// Use the copy of the superblock, if the first one is damaged.
    #[arg(long, hide_short_help = true)]
    backup_superblock: bool,
    /// How many entries are looked at, at most. Without it, ten million.
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit_entries: Option<u64>,
    /// How many directories within each other are entered. Without it, 256.
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit_depth: Option<usize>,
    /// How many bytes of files are read, or as in 64m (k, m, g). Without it, 1024g.
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = size::parse)]
    limit_bytes: Option<u64>,
    /// How long it may take, in seconds. Without it, 600.
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    limit_time: Option<u64>,
    /// How much memory names, links and differences may take. Without it, 64m.
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
        for folder in self.allowed(path) {
            options = options.allow(folder);
        }
        if self.torn {
            options = options.torn();
        }
        if self.reading.ignore_checksums {
            options = options.ignore_checksums();
        }
        if self.reading.ignore_journal {
            options = options.ignore_journal();
        }
        if self.reading.backup_superblock {
            options = options.backup_superblock();
        }
        options.open(path)
    }

    /// How an image is opened whose file system does not matter.
    pub(crate) fn for_image(&self, path: &Path) -> OpenOptions {
        let mut options = OpenOptions::new().torn(self.torn);
        if let Some(format) = self.format {
            options = options.format(format.into());
        }
        let allowed = self.allowed(path).into_iter();
        allowed.fold(options, OpenOptions::allow)
    }

    /// Where the backing files of an image may be.
    fn allowed(&self, image: &Path) -> Vec<PathBuf> {
        if !self.allow_backing.is_empty() {
            return self.allow_backing.clone();
        }
        let environments = Cache::user().map(|cache| cache.folder().to_owned());
        let environments = environments.ok().filter(|folder| folder.is_dir());
        // Where the image is. One that cannot be found will not be opened.
        let own = image.canonicalize();
        let own = own
            .ok()
            .and_then(|image| image.parent().map(Path::to_owned));
        own.into_iter().chain(environments).collect()
    }

    /// How many entries were asked for at most.
    pub(crate) fn limit_entries(&self) -> Option<u64> {
        self.reading.limit_entries
    }

    /// How many bytes were asked for at most.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.reading.limit_bytes
    }

    pub(crate) fn limits(&self) -> DiskLimits {
        let asked = &self.reading;
        let mut limits = DiskLimits::default();
        limits.entries = asked.limit_entries.unwrap_or(limits.entries);
        limits.depth = asked.limit_depth.unwrap_or(limits.depth);
        limits.bytes = asked.limit_bytes.unwrap_or(limits.bytes);
        limits.time = asked.limit_time.map_or(limits.time, Duration::from_secs);
        if let Some(bytes) = asked.limit_memory {
            limits.memory = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        limits
    }
}

/// A path on a disk, from its root on: with a slash in front, without `.` and
/// with single slashes.
pub(crate) fn rooted(path: &Path) -> PathBuf {
    Path::new("/").join(path).components().collect()
}
