//! Builds an image from a tree.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::debugfs::{Debugfs, FillError};
use crate::mke2fs::{FORMAT_GENERATION, Mke2fs, uuid_and_hash_seed};
use crate::script::Script;
use crate::size::SpaceEstimate;
use crate::staging::Staging;
use crate::{
    Digest, Error, Fingerprint, Progress, Size, Stage, Timestamps, Tools, Tree, Uuid, e2fsck,
};

/// Bytes of `s_volume_name` in the superblock.
const MAX_LABEL: usize = 16;
/// Prefix and suffix of unfinished images, by which a later run finds those of killed builds.
pub(crate) const PARTIAL_PREFIX: &str = ".vmcell-";
pub(crate) const PARTIAL_SUFFIX: &str = ".partial";

/// An ext4 image on the host's disk.
///
/// ```no_run
/// # use vmcell_rootfs::{ImageBuilder, Tree};
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let image = ImageBuilder::new().build(&Tree::new(), "empty.ext4")?;
/// println!("{}: {} bytes, UUID {}", image.path.display(), image.size, image.uuid);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// The path of the image file.
    pub path: PathBuf,
    /// The length of the file in bytes. It is sparse, so it takes less on disk.
    pub size: u64,
    /// The UUID of its file system.
    pub uuid: Uuid,
}

/// Parameters for building an image from a [`Tree`].
///
/// ```no_run
/// use vmcell_rootfs::{ImageBuilder, Size, Tree};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let image = ImageBuilder::new()
///     .label("tools")
///     .size(Size::Fit { headroom: 512 << 20 })
///     .build(&Tree::from_dir("./tools")?, "tools.ext4")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageBuilder {
    label: String,
    size: Size,
    timestamps: Timestamps,
    seed: Vec<u8>,
    tools: Tools,
}

impl ImageBuilder {
    /// Returns the defaults: no label, 1 GiB of free space, times clamped to the start of 2025.
    ///
    /// ```
    /// use vmcell_rootfs::{ImageBuilder, Size, Timestamps};
    ///
    /// let explicit = ImageBuilder::new()
    ///     .label("")
    ///     .seed("")
    ///     .size(Size::Fit { headroom: 1 << 30 })
    ///     .timestamps(Timestamps::ClampTo(1_735_689_600));
    /// assert_eq!(explicit, ImageBuilder::new());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the volume label: at most 16 bytes.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the size of the file system.
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// Sets how modification times are stored.
    #[must_use]
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Sets the seed from which the UUID is derived, together with the label. Images that one VM
    /// mounts side by side should differ in one of the two.
    #[must_use]
    pub fn seed(mut self, seed: impl Into<Vec<u8>>) -> Self {
        self.seed = seed.into();
        self
    }

    /// Sets the folders to search for `mke2fs`, `debugfs` and `e2fsck`.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Builds the image. It is written under a temporary name next to `destination`, flushed and
    /// renamed, so `destination` is either the whole image or unchanged.
    ///
    /// ```no_run
    /// # use vmcell_rootfs::{ImageBuilder, Tree};
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let image = ImageBuilder::new().build(&Tree::new(), "empty.ext4")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ToolMissing`], [`Error::ToolTooOld`] or [`Error::ToolUnusable`] without a recent
    /// e2fsprogs, [`Error::TooSmall`] if the tree does not fit, [`Error::Read`] and
    /// [`Error::Write`] for I/O errors on the host. Temporary files are removed.
    pub fn build(&self, tree: &Tree, destination: impl AsRef<Path>) -> Result<Image, Error> {
        self.build_with(tree, destination, |_| {})
    }

    /// Builds the image as [`ImageBuilder::build`] does, and reports progress.
    ///
    /// ```no_run
    /// # use vmcell_rootfs::{ImageBuilder, Tree};
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let tree = Tree::from_dir("./big")?;
    /// ImageBuilder::new().build_with(&tree, "big.ext4", |progress| {
    ///     eprint!("\r{:3.0}% {:<20}", progress.fraction * 100.0, progress.stage.to_string());
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ImageBuilder::build`].
    pub fn build_with(
        &self,
        tree: &Tree,
        destination: impl AsRef<Path>,
        mut progress: impl FnMut(Progress),
    ) -> Result<Image, Error> {
        // The mode of a new file, to which the umask applies.
        self.build_with_mode(tree, destination.as_ref(), 0o666, &mut progress)
    }

    pub(crate) fn build_with_mode(
        &self,
        tree: &Tree,
        destination: &Path,
        mode: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Image, Error> {
        self.check_label()?;
        let epoch = self.timestamps.epoch()?;
        self.tools.version()?;
        let staging = Staging::new(tree)?;
        let script = Script::new(tree, &staging, self.timestamps)?;
        let estimate = SpaceEstimate::of(tree);
        let layout = self.size.layout(&estimate)?;
        let (uuid, hash_seed) = uuid_and_hash_seed(&self.identity_digest());

        progress(Progress::at(Stage::Format, 0.0));
        let write_error = |source| Error::Write {
            path: destination.to_owned(),
            source,
        };
        let absolute = std::path::absolute(destination).map_err(write_error)?;
        let partial = tempfile::Builder::new()
            .prefix(PARTIAL_PREFIX)
            .suffix(PARTIAL_SUFFIX)
            .permissions(Permissions::from_mode(mode | 0o600))
            .tempfile_in(absolute.parent().unwrap_or(Path::new("/")))
            .map_err(write_error)?;
        partial
            .as_file()
            .set_len(layout.bytes)
            .map_err(write_error)?;
        Mke2fs {
            label: &self.label,
            uuid,
            hash_seed,
            layout,
            epoch,
        }
        .run(&self.tools, partial.path())?;

        progress(Progress::at(Stage::Fill, 0.0));
        let debugfs = Debugfs {
            tools: &self.tools,
            image: partial.path(),
            staging: &staging,
            epoch,
        };
        let mut report = |part| progress(Progress::at(Stage::Fill, part));
        debugfs
            .fill(&script, &mut report)
            .map_err(|error| match error {
                FillError::ImageFull => Error::TooSmall {
                    size: layout.bytes,
                    needed: estimate.min_bytes(),
                },
                FillError::HostFull => Error::HostFull {
                    path: destination.to_owned(),
                },
                FillError::Other(error) => error,
            })?;

        progress(Progress::at(Stage::Check, 0.0));
        e2fsck::check(&self.tools, partial.path())?;

        progress(Progress::at(Stage::Publish, 0.0));
        if mode & 0o200 == 0 {
            let permissions = Permissions::from_mode(mode);
            partial
                .as_file()
                .set_permissions(permissions)
                .map_err(write_error)?;
        }
        partial.as_file().sync_all().map_err(write_error)?;
        partial
            .persist(&absolute)
            .map_err(|error| write_error(error.error))?;
        progress(Progress::at(Stage::Done, 1.0));
        Ok(Image {
            path: destination.to_owned(),
            size: layout.bytes,
            uuid,
        })
    }

    /// Returns the UUID of the images that this builder makes.
    pub(crate) fn uuid(&self) -> Uuid {
        uuid_and_hash_seed(&self.identity_digest()).0
    }

    /// Adds every parameter that affects the bytes of an image. The tree is not included.
    pub(crate) fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
        inputs.field("format", FORMAT_GENERATION);
        inputs.field("tools", self.tools.version()?);
        inputs.field("label", &self.label).field("seed", &self.seed);
        self.size.fingerprint(inputs);
        self.timestamps.fingerprint(inputs);
        Ok(())
    }

    fn identity_digest(&self) -> Digest {
        let mut inputs = Fingerprint::new("vmcell file system identity");
        inputs
            .field("label", &self.label)
            .field("seed", &self.seed)
            .digest()
    }

    fn check_label(&self) -> Result<(), Error> {
        let is_good = self.label.len() <= MAX_LABEL && !self.label.contains(char::is_control);
        is_good.then_some(()).ok_or_else(|| Error::Label {
            label: self.label.clone(),
        })
    }
}
