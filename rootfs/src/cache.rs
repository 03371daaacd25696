//! Images that are made once and kept.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use crate::image::{PARTIAL_PREFIX, PARTIAL_SUFFIX};
use crate::superblock::Superblock;
use crate::{Digest, Error, Fingerprint, ImageBuilder, Progress, Recipe, Stage, Uuid};

/// Nobody can write to an image of the cache: VMs write to layers on top of it.
const READ_ONLY: u32 = 0o444;
/// No build takes this long, so an unfinished image of this age is what a crash has left.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder of immutable images, named after the recipe and a digest of all inputs.
///
/// Any number of processes may use one folder at the same time. An image appears under its name
/// when it is complete. One is made at a time: who wants the same one waits and finds it.
///
/// ```no_run
/// use vmcell_rootfs::{Cache, recipe};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let cache = Cache::user()?;
/// match cache.lookup(&recipe::base())? {
///     Some(image) => println!("there: {}", image.path.display()),
///     None => println!("not yet: it is made on first use"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// An image in a [`Cache`].
///
/// ```no_run
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let image = vmcell_rootfs::recipe::base().cached()?;
/// println!("{} was made from {}", image.path.display(), image.digest);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedImage {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes. On disk it takes less, because it is sparse.
    pub size: u64,
    /// The UUID of its file system.
    pub uuid: Uuid,
    /// Names everything that the image was made from: the recipe, its inputs, the parameters
    /// and the version of e2fsprogs. Equal digests mean equal bytes, unless a recipe says that
    /// it cannot promise that.
    pub digest: Digest,
    /// Whether it had to be made.
    pub origin: Origin,
}

/// Whether an image of the cache was there already.
///
/// ```no_run
/// use vmcell_rootfs::{Origin, recipe};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// if recipe::base().cached()?.origin == Origin::Built {
///     println!("made, and kept for the next time");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was found.
    Found,
    /// This call has made it.
    Built,
}

impl Cache {
    /// The cache of the user: `$XDG_CACHE_HOME/vmcell/images`, by default
    /// `~/.cache/vmcell/images`.
    ///
    /// ```
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// # if std::env::var_os("HOME").is_none() { return Ok(()); }
    /// assert!(vmcell_rootfs::Cache::user()?.folder().ends_with("vmcell/images"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoCacheFolder`] if neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
    pub fn user() -> Result<Self, Error> {
        // XDG Base Directory Specification: relative paths are to be ignored.
        let absolute = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Ok(Self::at(
            caches.ok_or(Error::NoCacheFolder)?.join("vmcell/images"),
        ))
    }

    /// A cache in this folder, which is made when the first image is.
    ///
    /// ```
    /// let cache = vmcell_rootfs::Cache::at("/var/cache/vmcell");
    /// assert_eq!(cache.folder(), "/var/cache/vmcell");
    /// ```
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Where the images are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds the image of a recipe without making it. Takes milliseconds: the inputs are
    /// digested, of the image only the superblock is read.
    ///
    /// ```no_run
    /// # use vmcell_rootfs::{Cache, recipe};
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let is_ready = Cache::user()?.lookup(&recipe::base())?.is_some();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the recipe for missing inputs, [`Error::ToolMissing`] and its kin for
    /// e2fsprogs, whose version is one of the inputs.
    pub fn lookup<R: Recipe + ?Sized>(&self, recipe: &R) -> Result<Option<CachedImage>, Error> {
        self.find(&Plan::new(recipe)?)
    }

    /// Finds the image of a recipe, or makes it.
    ///
    /// ```no_run
    /// # use vmcell_rootfs::{Cache, recipe};
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let image = Cache::at("./images").image(&recipe::base())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Cache::lookup`], of the recipe, and of [`ImageBuilder::build`].
    pub fn image<R: Recipe + ?Sized>(&self, recipe: &R) -> Result<CachedImage, Error> {
        self.image_with(recipe, |_| {})
    }

    /// Finds the image of a recipe, or makes it and tells how far it is.
    ///
    /// ```no_run
    /// # use vmcell_rootfs::{Cache, recipe};
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// Cache::user()?.image_with(&recipe::base(), |progress| eprintln!("{progress:?}"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Cache::image`].
    pub fn image_with<R: Recipe + ?Sized>(
        &self,
        recipe: &R,
        mut progress: impl FnMut(Progress),
    ) -> Result<CachedImage, Error> {
        let mut plan = Plan::new(recipe)?;
        if let Some(found) = self.find(&plan)? {
            return Ok(found);
        }
        progress(Progress::at(Stage::Gather, 0.0));
        fs::create_dir_all(&self.folder).map_err(|source| Error::Write {
            path: self.folder.clone(),
            source,
        })?;
        let _turn = self.wait_for_turn();
        loop {
            if let Some(found) = self.find(&plan)? {
                return Ok(found);
            }
            let tree = recipe.tree_with(&mut |part| progress(Progress::at(Stage::Gather, part)))?;
            // An input may have changed between its digest and its use, by an upgrade of the
            // host for example. An image must never be kept under the name of another.
            let now = Plan::new(recipe)?;
            if now.digest != plan.digest {
                plan = now;
                continue;
            }
            self.sweep();
            let path = self.folder.join(&plan.name);
            let image = plan.builder.make(&tree, &path, READ_ONLY, &mut progress)?;
            return Ok(CachedImage {
                path,
                size: image.size,
                uuid: image.uuid,
                digest: plan.digest,
                origin: Origin::Built,
            });
        }
    }

    /// Waits until nobody else makes an image here, and keeps others waiting while the file is
    /// open. That saves work and no more, so a file system without locks is good enough.
    fn wait_for_turn(&self) -> Option<File> {
        let folder = File::open(&self.folder).ok()?;
        retry_on_intr(|| flock(&folder, FlockOperation::LockExclusive)).ok()?;
        Some(folder)
    }

    fn find(&self, plan: &Plan) -> Result<Option<CachedImage>, Error> {
        let path = self.folder.join(&plan.name);
        let superblock = match Superblock::read(&path) {
            Ok(superblock) => superblock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(Error::Read { path, source }),
        };
        // The UUID follows from the whole digest, of which the name has only the beginning.
        let genuine = superblock.filter(|superblock| superblock.uuid == plan.builder.uuid());
        Ok(genuine.map(|superblock| CachedImage {
            path,
            size: superblock.bytes,
            uuid: superblock.uuid,
            digest: plan.digest,
            origin: Origin::Found,
        }))
    }

    /// Removes what killed builds have left. Failing to is no reason to fail.
    fn sweep(&self) {
        let is_abandoned = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let changed = entry.metadata().and_then(|found| found.modified());
            let age = changed
                .ok()
                .and_then(|changed| SystemTime::now().duration_since(changed).ok());
            name.starts_with(PARTIAL_PREFIX)
                && name.ends_with(PARTIAL_SUFFIX)
                && age.is_some_and(|age| age > ABANDONED_AFTER)
        };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(is_abandoned) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What the inputs of a recipe come to at present.
struct Plan {
    name: String,
    digest: Digest,
    builder: ImageBuilder,
}

impl Plan {
    fn new<R: Recipe + ?Sized>(recipe: &R) -> Result<Self, Error> {
        let builder = recipe.image();
        let mut inputs = Fingerprint::new("vmcell recipe");
        inputs.field("recipe", recipe.name());
        builder.fingerprint(&mut inputs)?;
        recipe.fingerprint(&mut inputs)?;
        let digest = inputs.digest();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = recipe
            .name()
            .chars()
            .map(|c| if is_plain(c) { c } else { '-' })
            .collect();
        Ok(Self {
            name: format!("{name}-{}.ext4", digest.short()),
            digest,
            builder: builder.seed(digest.0),
        })
    }
}
