use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempPath;
use vmcell::disk::{
    Disk, DiskError,
    image::{Image, OpenOptions, create_child_of_size, seal},
};
use vmcell_rootfs::{Digest, catalog::BuildLayers};

use crate::BuildError;

/// The disks of steps: each is a layer above that of the step before.
pub(crate) struct Layers {
    store: BuildLayers,
    /// The folder with the images that the lowest layers are above.
    images: PathBuf,
}

impl Layers {
    pub(crate) fn new(store: BuildLayers, images: PathBuf) -> Self {
        Self { store, images }
    }

    /// Returns the folders that layers and images are in.
    pub(crate) fn folders(&self, base: &Path) -> Vec<PathBuf> {
        let base = base.parent().map(Path::to_owned);
        [self.store.folder().to_owned(), self.images.clone()]
            .into_iter()
            .chain(base)
            .collect()
    }

    fn options(&self, base: &Path) -> OpenOptions {
        let folders = self.folders(base).into_iter();
        folders.fold(OpenOptions::new(), OpenOptions::allow_backing)
    }

    /// Returns the layer of a step, if it was made, and all below it is there.
    pub(crate) fn find(&self, step: Digest, base: &Path) -> Option<PathBuf> {
        let path = self.store.path(step);
        let is_whole = Image::open(&path, self.options(base)).is_ok();
        if !is_whole {
            // It does not exist, or an image below it was removed.
            let _ = fs::remove_file(&path);
        }
        is_whole.then_some(path)
    }

    /// Makes an empty layer above a disk, of at least this size. It is removed unless it is
    /// kept.
    pub(crate) fn begin(
        &self,
        parent: &Path,
        base: &Path,
        least_size: u64,
    ) -> Result<TempPath, BuildError> {
        let folder = self.store.folder();
        let mut failed = None;
        let partial = tempfile::Builder::new()
            .prefix(".partial-")
            .suffix(".qcow2")
            .make_in(folder, |path| {
                let created = create_child_of_size(parent, path, least_size, self.options(base));
                created.map_err(|error| {
                    failed = Some(error);
                    io::ErrorKind::Other.into()
                })
            });
        match (partial, failed) {
            (Ok(partial), _) => Ok(partial.into_temp_path()),
            (Err(_), Some(error)) => Err(error.into()),
            (Err(source), None) => Err(BuildError::Store(vmcell_rootfs::Error::Write {
                path: folder.to_owned(),
                source,
            })),
        }
    }

    /// Keeps the layer of a step that is done.
    pub(crate) fn keep(
        &self,
        partial: TempPath,
        step: Digest,
        base: &Path,
    ) -> Result<PathBuf, BuildError> {
        seal(&partial, self.options(base))?;
        let path = self.store.path(step);
        match partial.persist_noclobber(&path) {
            Ok(()) => Ok(path),
            // Another build has done the same, and others may be above it by now.
            Err(_) if self.find(step, base).is_some() => Ok(path),
            Err(error) => Err(BuildError::Store(vmcell_rootfs::Error::Write {
                path,
                source: error.error,
            })),
        }
    }

    /// Opens the disk of a stage for reading.
    pub(crate) fn disk(&self, path: &Path, base: &Path) -> Result<Disk, DiskError> {
        let folders = self.folders(base).into_iter();
        let options = folders.fold(Disk::options(), |options, folder| {
            options.allow_backing(folder)
        });
        options.open(path)
    }

    /// Opens the disk of a stage, to be copied whole.
    pub(crate) fn image(&self, path: &Path, base: &Path) -> Result<Image, BuildError> {
        Ok(Image::open(path, self.options(base))?)
    }
}
