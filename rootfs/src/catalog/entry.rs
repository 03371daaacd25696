use std::path::PathBuf;
use std::time::SystemTime;

use crate::oci::Defaults;

/// An environment of a [`Catalog`](super::Catalog).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// Its name.
    pub name: String,
    /// Whether it can be made again from its name alone, as recipes can.
    pub is_recipe: bool,
    /// Where it is from, or what is in it.
    pub source: String,
    /// The digest of what its disk image was made of, as `sha256:DIGITS`. Recipes have one when
    /// their image was built.
    pub digest: Option<String>,
    /// Its disk image. Recipes have one when it was built.
    pub image: Option<CatalogImage>,
    /// How programs run in it.
    pub defaults: Defaults,
}

/// The disk image of a [`CatalogEntry`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogImage {
    /// The path.
    pub path: PathBuf,
    /// How much it takes on the disk of the host.
    pub disk_bytes: u64,
    /// How much is in its file system.
    pub unpacked_bytes: u64,
    /// When it was made.
    pub made: Option<SystemTime>,
    /// When a VM was last started from it.
    pub used: Option<SystemTime>,
}
