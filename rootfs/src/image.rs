//! From a tree to an image.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::debugfs::{Debugfs, FillError};
use crate::mke2fs::{FORMAT_GENERATION, Format, identities};
use crate::script::Script;
use crate::size::Needs;
use crate::staging::Staging;
use crate::{
    Digest, Error, Fingerprint, Progress, Size, Stage, Timestamps, Tools, Tree, Uuid, e2fsck,
};

/// `s_volume_name` of the superblock.
const LONGEST_LABEL: usize = 16;
/// How unfinished images are called, so that a later run knows what a crash has left.
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
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes. On disk it takes less, because it is sparse.
    pub size: u64,
    /// The UUID of its file system.
    pub uuid: Uuid,
}

/// How to make an image from a [`Tree`].
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
    /// No label, the size of the tree and 1 GiB, times clamped to the start of 2025.
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

    /// The volume's label: at most 16 bytes.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The size of the file system.
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// Which times the image carries.
    #[must_use]
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// What the UUID follows from, together with the label. Images that one VM mounts side by
    /// side should differ in one of the two.
    #[must_use]
    pub fn seed(mut self, seed: impl Into<Vec<u8>>) -> Self {
        self.seed = seed.into();
        self
    }

    /// Where to look for `mke2fs`, `debugfs` and `e2fsck`.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Makes the image. It is written under a temporary name beside `destination`, flushed and
    /// renamed, so there is either the whole image or what was there before.
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
    /// [`Error::ToolMissing`] and its kin without a recent e2fsprogs, [`Error::TooSmall`] if the
    /// tree does not fit, [`Error::Read`] and [`Error::Write`] for trouble with the host's
    /// files. No file is left behind.
    pub fn build(&self, tree: &Tree, destination: impl AsRef<Path>) -> Result<Image, Error> {
        self.build_with(tree, destination, |_| {})
    }

    /// Makes the image, as [`ImageBuilder::build`] does, and tells how far it is.
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
        // What remains of this after the umask is what any new file gets.
        self.make(tree, destination.as_ref(), 0o666, &mut progress)
    }

    pub(crate) fn make(
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
        let needs = Needs::of(tree, &staging);
        let layout = self.size.layout(&needs)?;
        let (uuid, hash_seed) = identities(&self.identity());

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
        Format {
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
                    needed: needs.smallest(),
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

    /// The UUID that images of this builder have.
    pub(crate) fn uuid(&self) -> Uuid {
        identities(&self.identity()).0
    }

    /// Adds everything that decides an image's bytes, besides its tree.
    pub(crate) fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
        inputs.field("format", FORMAT_GENERATION);
        inputs.field("tools", self.tools.version()?);
        inputs.field("label", &self.label).field("seed", &self.seed);
        self.size.fingerprint(inputs);
        self.timestamps.fingerprint(inputs);
        Ok(())
    }

    fn identity(&self) -> Digest {
        let mut inputs = Fingerprint::new("vmcell file system identity");
        inputs
            .field("label", &self.label)
            .field("seed", &self.seed)
            .digest()
    }

    fn check_label(&self) -> Result<(), Error> {
        let is_good = self.label.len() <= LONGEST_LABEL && !self.label.contains(char::is_control);
        is_good.then_some(()).ok_or_else(|| Error::Label {
            label: self.label.clone(),
        })
    }
}
