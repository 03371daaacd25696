use std::path::PathBuf;
use std::time::SystemTime;

use crate::oci::Defaults;

/// An environment of a [`Catalog`](super::Catalog).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// Its name.
    pub name: String,
    /// How it is made.
    pub kind: EnvironmentKind,
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

/// How an environment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvironmentKind {
    /// By a recipe, and again when it is wanted.
    Recipe,
    /// From the image of a container.
    Imported,
    /// Step by step, on top of another.
    Built,
}

impl EnvironmentKind {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recipe => "recipe",
            Self::Imported => "imported",
            Self::Built => "built",
        }
    }
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
