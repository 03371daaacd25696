//! What a new VM boots from.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::Context;
use vmcell::{
    Vm, VmBuilder,
    disk::image::{self, Format, ImageError, OpenOptions},
};

use crate::environment;

/// The image of an environment, or a persistent disk above it.
pub(crate) struct BootDisk {
    image: PathBuf,
    disk: Option<PathBuf>,
}

impl BootDisk {
    /// Builds the image and creates the disk if they do not exist.
    pub(crate) fn prepare(environment: &OsStr, disk: Option<PathBuf>) -> anyhow::Result<Self> {
        let image = environment::image(environment)?;
        if let Some(disk) = &disk {
            match image::create_child(&image, disk, OpenOptions::new().format(Format::Raw)) {
                // The existing disk is used again.
                Ok(_) | Err(ImageError::Exists { .. }) => {}
                Err(error) => return Err(error).context("cannot create the disk"),
            }
        }
        Ok(Self { image, disk })
    }

    /// Returns a builder of a VM that boots from it.
    pub(crate) fn builder(self) -> VmBuilder {
        let Some(disk) = self.disk else {
            return Vm::builder().image(self.image);
        };
        Vm::builder()
            .allow_backing(parent_directory(&disk))
            .allow_backing(parent_directory(&self.image))
            .disk(disk)
    }
}

fn parent_directory(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
