use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::record::{Record, VERSION, seconds};
use super::{Catalog, CatalogEntry, EnvironmentName};
use crate::kept_files::KeptFiles;
use crate::oci::Defaults;
use crate::{Digest, Error};

/// The layers of the steps of builds. None is pruned as long as this exists.
#[derive(Debug)]
pub struct BuildLayers {
    files: KeptFiles,
    _lock: File,
}

/// An environment that was built step by step.
#[derive(Clone, Debug)]
pub struct BuiltImage {
    /// The digest of all that it was made of.
    pub digest: Digest,
    /// What it was made from.
    pub source: String,
    /// The steps whose layers are kept with it.
    pub layers: Vec<Digest>,
    /// How programs run in it.
    pub defaults: Defaults,
}

impl BuildLayers {
    /// Returns the folder that they are in.
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// Returns where the layer of a step is, or would be.
    pub fn path(&self, step: Digest) -> PathBuf {
        self.folder().join(layer_name(step))
    }
}

/// The name of a layer's file.
fn layer_name(step: Digest) -> String {
    format!("{step}.qcow2")
}

impl Catalog {
    /// Returns where the layers of builds are.
    ///
    /// # Errors
    /// [`Error::Write`] if the folder cannot be made.
    pub fn build_layers(&self) -> Result<BuildLayers, Error> {
        let files = KeptFiles::layers(self.cache.folder());
        let lock = files.lock()?;
        Ok(BuildLayers { files, _lock: lock })
    }

    /// Gives a name to an environment that was built. If its disk image is not there yet, `make`
    /// makes it at a path. What had the name before loses it.
    ///
    /// # Errors
    /// [`Error::EnvironmentName`] if the name cannot be given, [`Error::Write`], and those of
    /// `make`.
    pub fn add_built<E: From<Error>>(
        &self,
        name: &str,
        built: BuiltImage,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<CatalogEntry, E> {
        let name = EnvironmentName::check(name)?;
        let _lock = self.cache.lock();
        let file_name = format!("{BUILT}{}.ext4", built.digest.short());
        let path = self.cache.folder().join(&file_name);
        if !path.exists() {
            make(&path)?;
            let read_only = fs::set_permissions(&path, Permissions::from_mode(0o444));
            read_only.map_err(|source| Error::Write { path, source })?;
        }
        let record = Record {
            version: VERSION,
            source: built.source,
            digest: format!("sha256:{}", built.digest),
            image: file_name,
            made: seconds(SystemTime::now()),
            blobs: Vec::new(),
            layers: built.layers.into_iter().map(layer_name).collect(),
            defaults: built.defaults,
        };
        self.records.put(&name, &record)?;
        Ok(self.imported(&name, record))
    }
}

/// The beginning of the names of disk images that were built.
pub(super) const BUILT: &str = "build-";
