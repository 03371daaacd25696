//! Environments by name: the recipes, images of containers that were imported, and those that were built.
//!
//! ```no_run
//! use vmcell_rootfs::{catalog::Catalog, oci::{ImageSource, OciImage}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let catalog = Catalog::user()?;
//! let source = ImageSource::parse("oci-archive:alpine.tar".as_ref()).ok_or("no source")?;
//! catalog.import("alpine", &OciImage::open(&source)?, |_| {})?;
//! for entry in catalog.list()? {
//!     println!("{}: {}", entry.name, entry.source);
//! }
//! # Ok(())
//! # }
//! ```

mod built;
mod entry;
mod name;
mod record;

pub use built::{BuildLayers, BuiltImage};
pub use entry::{CatalogEntry, CatalogImage, EnvironmentKind};
pub use name::EnvironmentName;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use record::{Record, Records, VERSION, seconds};

use crate::kept_files::KeptFiles;
use crate::oci::{Defaults, OciImage};
use crate::superblock::Superblock;
use crate::{Cache, Environment, Error, Progress};

/// The environments of a [cache](Cache), by their names. Any number of programs may use one.
#[derive(Clone, Debug)]
pub struct Catalog {
    cache: Cache,
    records: Records,
}

/// What [`Catalog::prune`] has removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The paths of the disk images.
    pub images: Vec<PathBuf>,
    /// How much they took on the disk, with what was pulled for them and the layers of builds.
    pub bytes: u64,
}

/// What [`Catalog::prune`] removes, of all that nothing needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Images that have no name any more.
    Unnamed,
    /// Also those of recipes, which are built again when they are wanted.
    Recipes,
}

/// The folder of the records, and that of the times of the last use.
const RECORDS: &str = "environments";
const USED: &str = "used";

impl Catalog {
    /// Returns the catalog of the [user's cache](Cache::user).
    ///
    /// # Errors
    /// As for [`Cache::user`].
    pub fn user() -> Result<Self, Error> {
        Ok(Self::of(Cache::user()?))
    }

    /// Returns the catalog of a cache.
    pub fn of(cache: Cache) -> Self {
        Self {
            records: Records::at(cache.folder().join(RECORDS)),
            cache,
        }
    }

    /// Returns the cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns all environments: the recipes, then those that were imported.
    ///
    /// # Errors
    /// [`Error::Read`] if the catalog cannot be read.
    pub fn list(&self) -> Result<Vec<CatalogEntry>, Error> {
        let recipes = Environment::ALL.map(|recipe| self.recipe(recipe));
        let imported = self.records.all()?.into_iter();
        let imported = imported.map(|(name, record)| self.imported(&name, record));
        Ok(recipes.into_iter().chain(imported).collect())
    }

    /// Returns the environment with a name, if there is one.
    ///
    /// # Errors
    /// [`Error::Read`] if the catalog cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<CatalogEntry>, Error> {
        if let Some(recipe) = Environment::from_name(name) {
            return Ok(Some(self.recipe(recipe)));
        }
        let Some(name) = EnvironmentName::parse(name) else {
            return Ok(None);
        };
        let record = self.records.get(&name)?;
        Ok(record.map(|record| self.imported(&name, record)))
    }

    /// Makes the disk image of a container's image, and gives it a name. What had the name before
    /// loses it.
    ///
    /// # Errors
    /// [`Error::EnvironmentName`] if the name cannot be given, and as for [`Cache::image`].
    /// Nothing is left behind.
    pub fn import(
        &self,
        name: &str,
        image: &OciImage,
        progress: impl FnMut(Progress),
    ) -> Result<CatalogEntry, Error> {
        let name = EnvironmentName::check(name)?;
        let disk = self.cache.image_with(image, progress)?;
        let file_name = disk.path.file_name().unwrap_or_default();
        let record = Record {
            version: VERSION,
            source: image.source().to_owned(),
            digest: format!("sha256:{}", image.id()),
            image: file_name.to_string_lossy().into_owned(),
            made: seconds(SystemTime::now()),
            blobs: image
                .pulled_blobs()
                .iter()
                .map(ToString::to_string)
                .collect(),
            layers: Vec::new(),
            defaults: image.defaults().clone(),
        };
        self.records.put(&name, &record)?;
        Ok(self.imported(&name, record))
    }

    /// Returns the disk image of an environment, which is built if it is one of a recipe, and how
    /// programs run in it. Remembers that it is used.
    ///
    /// # Errors
    /// As for [`find`](Self::find) and [`Cache::image`]; [`Error::ImageGone`] if its disk image
    /// was removed.
    pub fn image(
        &self,
        name: &str,
        progress: impl FnMut(Progress),
    ) -> Result<Option<(PathBuf, Defaults)>, Error> {
        if let Some(recipe) = Environment::from_name(name) {
            let image = recipe.build_in(&self.cache, progress)?;
            self.set_used(&image.path);
            return Ok(Some((image.path, Defaults::default())));
        }
        let Some(entry) = self.find(name)? else {
            return Ok(None);
        };
        let image = entry.image.ok_or_else(|| Error::ImageGone {
            name: name.to_owned(),
            source_name: entry.source,
        })?;
        self.set_used(&image.path);
        Ok(Some((image.path, entry.defaults)))
    }

    /// Takes the name from an environment that was imported. Its disk image is removed unless
    /// another name or a path of `in_use` is that of it.
    ///
    /// # Errors
    /// [`Error::NoEnvironment`] if there is none, [`Error::Write`] if it cannot be removed.
    pub fn remove(&self, name: &str, in_use: &[PathBuf]) -> Result<Pruned, Error> {
        let missing = || Error::NoEnvironment {
            name: name.to_owned(),
        };
        let name = EnvironmentName::parse(name).ok_or_else(missing)?;
        let record = self.records.get(&name)?.ok_or_else(missing)?;
        self.records.remove(&name)?;
        let path = self.cache.folder().join(record.image);
        self.remove_images(|found| *found == path, in_use)
    }

    /// Removes disk images that nothing needs: no name, and no path of `in_use`. While something
    /// is built, nothing is removed.
    ///
    /// # Errors
    /// [`Error::Write`] if one cannot be removed.
    pub fn prune(&self, what: Prune, in_use: &[PathBuf]) -> Result<Pruned, Error> {
        let is_imported = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("oci-") || name.starts_with(built::BUILT)
        };
        let current: Vec<_> = Environment::ALL
            .into_iter()
            .filter_map(|recipe| Some(self.recipe(recipe).image?.path))
            .collect();
        self.remove_images(
            |path| match what {
                Prune::Unnamed => is_imported(path) || !current.contains(path),
                Prune::Recipes => true,
            },
            in_use,
        )
    }

    /// Removes disk images that nothing needs.
    fn remove_images(
        &self,
        is_wanted: impl Fn(&PathBuf) -> bool,
        in_use: &[PathBuf],
    ) -> Result<Pruned, Error> {
        let folder = self.cache.folder();
        let _lock = self.cache.lock();
        let records = self.records.all()?;
        let named: BTreeSet<_> = records
            .iter()
            .map(|(_, record)| folder.join(&record.image))
            .collect();
        let mut pruned = Pruned::default();
        let (blobs, layers) = (KeptFiles::blobs(folder), KeptFiles::layers(folder));
        // A build may be about to go on from any image.
        let Some(_no_builds) = layers.lock_for_pruning() else {
            return Ok(pruned);
        };
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let is_image = path.extension() == Some(OsStr::new("ext4"));
            if !is_image || named.contains(&path) || in_use.contains(&path) || !is_wanted(&path) {
                continue;
            }
            let bytes = fs::metadata(&path).map_or(0, |found| found.blocks() * 512);
            fs::remove_file(&path).map_err(|source| Error::Write {
                path: path.clone(),
                source,
            })?;
            let _ = fs::remove_file(self.used_path(&path));
            pruned.bytes += bytes;
            pruned.images.push(path);
        }
        let named = |of: fn(&Record) -> &Vec<String>| {
            let names = records.iter().flat_map(|(_, record)| of(record));
            names.cloned().collect()
        };
        pruned.bytes += layers.prune(&named(|record| &record.layers))?;
        if let Some(_no_pulls) = blobs.lock_for_pruning() {
            pruned.bytes += blobs.prune(&named(|record| &record.blobs))?;
        }
        Ok(pruned)
    }

    fn recipe(&self, recipe: Environment) -> CatalogEntry {
        let cached = recipe.cached(&self.cache).ok().flatten();
        CatalogEntry {
            name: recipe.name().to_owned(),
            kind: EnvironmentKind::Recipe,
            source: recipe.description().to_owned(),
            digest: cached
                .as_ref()
                .map(|image| format!("sha256:{}", image.digest)),
            image: cached.and_then(|image| self.describe(&image.path)),
            defaults: Defaults::default(),
        }
    }

    fn imported(&self, name: &EnvironmentName, record: Record) -> CatalogEntry {
        let image = self.describe(&self.cache.folder().join(&record.image));
        let made = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(record.made));
        CatalogEntry {
            name: name.to_string(),
            kind: match record.image.starts_with(built::BUILT) {
                true => EnvironmentKind::Built,
                false => EnvironmentKind::Imported,
            },
            source: record.source,
            digest: Some(record.digest),
            image: image.map(|image| CatalogImage { made, ..image }),
            defaults: record.defaults,
        }
    }

    /// Describes a disk image, if it is one.
    fn describe(&self, path: &Path) -> Option<CatalogImage> {
        let superblock = Superblock::read(path).ok()??;
        let metadata = fs::metadata(path).ok()?;
        let used = fs::metadata(self.used_path(path)).and_then(|used| used.modified());
        Some(CatalogImage {
            path: path.to_owned(),
            disk_bytes: metadata.blocks() * 512,
            unpacked_bytes: superblock.used_bytes,
            made: metadata.modified().ok(),
            used: used.ok(),
        })
    }

    /// The time of this empty file is that of the last use: the image's own is part of what
    /// templates know it by.
    fn used_path(&self, image: &Path) -> PathBuf {
        let name = image.file_name().unwrap_or_default();
        self.cache.folder().join(USED).join(name)
    }

    /// Remembers that an image is used. Nothing depends on it.
    fn set_used(&self, image: &Path) {
        let path = self.used_path(image);
        let touch = || {
            fs::create_dir_all(self.cache.folder().join(USED))?;
            let file = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            file.set_modified(SystemTime::now())
        };
        let _ = touch();
    }
}
