//! A cache of images, so that each is built once.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use crate::image::{PARTIAL_PREFIX, PARTIAL_SUFFIX};
use crate::superblock::Superblock;
use crate::{Digest, Error, Fingerprint, ImageBuilder, Progress, Recipe, Stage, Uuid};

/// Mode of a cached image. VMs write to overlays on top of it, never to the image.
const READ_ONLY: u32 = 0o444;
/// Age at which an unfinished image is the leftover of a killed build: no build takes this long.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder of immutable images, named after the recipe and a digest of all inputs.
///
/// Any number of processes may use one folder at the same time. An image appears under its name
/// only when it is complete. A lock serializes builds, so a process that needs an image that is
/// being built waits and then finds it.
///
/// ```no_run
/// use vmcell_rootfs::{Cache, recipe};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let cache = Cache::user()?;
/// match cache.lookup(&recipe::base())? {
///     Some(image) => println!("cached: {}", image.path.display()),
///     None => println!("not cached: it is built on first use"),
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
/// println!("{} has the digest {}", image.path.display(), image.digest);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedImage {
    /// The path of the image file.
    pub path: PathBuf,
    /// The length of the file in bytes. It is sparse, so it takes less on disk.
    pub size: u64,
    /// The UUID of its file system.
    pub uuid: Uuid,
    /// The digest of everything the image was built from: the recipe, its inputs, the parameters
    /// and the version of e2fsprogs. Equal digests mean equal bytes, unless the recipe documents
    /// an exception.
    pub digest: Digest,
    /// Whether the image was built by this call.
    pub origin: Origin,
}

/// Whether an image was already in the cache.
///
/// ```no_run
/// use vmcell_rootfs::{Origin, recipe};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// if recipe::base().cached()?.origin == Origin::Built {
///     println!("built, and cached for the next time");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was in the cache.
    Found,
    /// This call built it.
    Built,
}

impl Cache {
    /// Returns the user's cache: `$XDG_CACHE_HOME/vmcell/images`, by default
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

    /// Returns a cache in this folder, which is created along with the first image.
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

    /// Returns the folder that holds the images.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the image of a recipe if it is cached, and builds nothing. Takes milliseconds: it
    /// hashes the inputs and reads only the superblock of the image.
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
    /// Those of the recipe for missing inputs; [`Error::ToolMissing`], [`Error::ToolTooOld`] or
    /// [`Error::ToolUnusable`] for e2fsprogs, whose version is one of the inputs.
    pub fn lookup<R: Recipe + ?Sized>(&self, recipe: &R) -> Result<Option<CachedImage>, Error> {
        self.find(&CacheKey::new(recipe)?)
    }

    /// Returns the image of a recipe, and builds it if it is not cached.
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

    /// Returns the image of a recipe, and builds it with progress reports if it is not cached.
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
        let mut key = CacheKey::new(recipe)?;
        if let Some(found) = self.find(&key)? {
            return Ok(found);
        }
        progress(Progress::at(Stage::Gather, 0.0));
        fs::create_dir_all(&self.folder).map_err(|source| Error::Write {
            path: self.folder.clone(),
            source,
        })?;
        let _lock = self.lock();
        loop {
            if let Some(found) = self.find(&key)? {
                return Ok(found);
            }
            let tree = recipe.tree_with(&mut |part| progress(Progress::at(Stage::Gather, part)))?;
            // An input may have changed after it was hashed, by an upgrade of the host for
            // example. An image must never be stored under the digest of other inputs.
            let current = CacheKey::new(recipe)?;
            if current.digest != key.digest {
                key = current;
                continue;
            }
            self.remove_abandoned();
            let path = self.folder.join(&key.name);
            let image = key
                .builder
                .build_with_mode(&tree, &path, READ_ONLY, &mut progress)?;
            return Ok(CachedImage {
                path,
                size: image.size,
                uuid: image.uuid,
                digest: key.digest,
                origin: Origin::Built,
            });
        }
    }

    /// Waits for the build lock, which is held until the returned file is closed. The lock only
    /// saves duplicate work, so failing to lock (a file system without flock) is ignored.
    pub(crate) fn lock(&self) -> Option<File> {
        let folder = File::open(&self.folder).ok()?;
        retry_on_intr(|| flock(&folder, FlockOperation::LockExclusive)).ok()?;
        Some(folder)
    }

    fn find(&self, key: &CacheKey) -> Result<Option<CachedImage>, Error> {
        let path = self.folder.join(&key.name);
        let superblock = match Superblock::read(&path) {
            Ok(superblock) => superblock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(Error::Read { path, source }),
        };
        // The UUID is derived from the whole digest; the file name holds only its first digits.
        let matching = superblock.filter(|superblock| superblock.uuid == key.builder.uuid());
        Ok(matching.map(|superblock| CachedImage {
            path,
            size: superblock.bytes,
            uuid: superblock.uuid,
            digest: key.digest,
            origin: Origin::Found,
        }))
    }

    /// Removes the unfinished images of killed builds. Ignores errors.
    fn remove_abandoned(&self) {
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

/// The file name, digest and builder that follow from the current inputs of a recipe.
struct CacheKey {
    name: String,
    digest: Digest,
    builder: ImageBuilder,
}

impl CacheKey {
    fn new<R: Recipe + ?Sized>(recipe: &R) -> Result<Self, Error> {
        let builder = recipe.image_builder();
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
