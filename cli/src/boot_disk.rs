//! What a new VM boots from.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use vmcell::{
    Vm, VmBuilder,
    disk::image::{self, Format, ImageError, OpenOptions},
};

use crate::environment;

/// The image of an environment, or a persistent disk above it.
pub(crate) struct BootDisk {
    image: PathBuf,
    disk: Option<PathBuf>,
    disk_mib: Option<u32>,
}

impl BootDisk {
    /// Builds the image and creates the disk if they do not exist.
    pub(crate) fn prepare(
        environment: &OsStr,
        disk: Option<PathBuf>,
        disk_mib: Option<u32>,
    ) -> anyhow::Result<Self> {
        let image = environment::image(environment)?;
        if let Some(disk) = &disk {
            let least_size = u64::from(disk_mib.unwrap_or(0)) << 20;
            let options = OpenOptions::new().format(Format::Raw);
            match image::create_child_of_size(&image, disk, least_size, options) {
                Ok(_) => {}
                Err(ImageError::Exists { .. }) if disk_mib.is_some() => bail!(
                    "{} exists already, and keeps its size: leave out --disk-mib",
                    disk.display()
                ),
                // The existing disk is used again.
                Err(ImageError::Exists { .. }) => {}
                Err(error) => return Err(error).context("cannot create the disk"),
            }
        }
        Ok(Self {
            image,
            disk,
            disk_mib,
        })
    }

    /// Returns a builder of a VM that boots from it.
    pub(crate) fn builder(self) -> VmBuilder {
        let vm = match self.disk_mib {
            Some(mib) => Vm::builder().disk_mib(mib),
            None => Vm::builder(),
        };
        let Some(disk) = self.disk else {
            return vm.image(self.image);
        };
        vm.allow_backing(parent_directory(&disk))
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
