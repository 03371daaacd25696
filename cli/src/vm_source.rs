//! What a new VM starts from: an environment, a disk, or a VM that was saved.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use anyhow::bail;
use clap::Args;
use vmcell::{Error, Template, Vm, VmBuilder};

use crate::{boot_disk::BootDisk, runtime::block_on};

/// The options for starting without a boot.
#[derive(Debug, Args)]
pub(crate) struct SourceOptions {
    /// Start the VM from a template of ENVIRONMENT, which takes a fraction of
    /// the time of a boot. The first start makes the template.
    #[arg(long, conflicts_with = "disk")]
    warm: bool,
    /// Start from the VM that was saved in FROM, the path of a snapshot or the
    /// name of a template, in place of ENVIRONMENT.
    #[arg(long, value_name = "FROM", conflicts_with_all = [
        "environment", "disk", "warm", "vcpu_count", "mem_mib", "disk_mib", "backend", "link",
        "allow_host_compat",
    ])]
    from: Option<OsString>,
}

impl SourceOptions {
    /// Returns whether the VM was saved, and boots nothing.
    pub(crate) fn is_saved(&self) -> bool {
        self.from.is_some()
    }
}

/// What a new VM starts from.
pub(crate) enum VmSource {
    Boot(BootDisk),
    /// A template of what it would boot from.
    Warm(BootDisk),
    Saved {
        /// The folder of the snapshot.
        path: PathBuf,
        /// Where the image below it is now, if it has been moved.
        image: Option<PathBuf>,
    },
}

impl VmSource {
    /// Builds the image and creates the disk, if they are needed and do not
    /// exist.
    pub(crate) fn prepare(
        environment: &OsStr,
        disk: Option<PathBuf>,
        disk_mib: Option<u32>,
        options: &SourceOptions,
    ) -> anyhow::Result<Self> {
        if let Some(from) = &options.from {
            return Self::saved(from, None);
        }
        let disk = BootDisk::prepare(environment, disk, disk_mib)?;
        Ok(match options.warm {
            true => Self::Warm(disk),
            false => Self::Boot(disk),
        })
    }

    /// Finds a snapshot by its path, or a template by its name.
    pub(crate) fn saved(from: &OsStr, image: Option<PathBuf>) -> anyhow::Result<Self> {
        let path = find(from)?;
        Ok(Self::Saved { path, image })
    }

    /// Returns a builder of a VM that starts from it.
    pub(crate) fn builder(self) -> VmBuilder {
        match self {
            Self::Boot(disk) => disk.builder(),
            Self::Warm(disk) => disk.builder().warm(true),
            Self::Saved { path, image } => {
                let builder = Vm::builder().snapshot(path);
                match image {
                    Some(image) => builder.image(image),
                    None => builder,
                }
            }
        }
    }

    /// Returns what to show to a user who waits for the start, for a start that
    /// may take longer than a boot, or that reads much from a disk.
    pub(crate) fn waiting_message(&self) -> Option<&'static str> {
        match self {
            Self::Boot(_) => None,
            Self::Warm(_) => Some("starting from a template, which the first start makes"),
            Self::Saved { .. } => Some("restoring the VM"),
        }
    }
}

/// Returns the folder of a snapshot. What contains no slash is a template, or if
/// there is none a folder here: what lies around in a folder does not replace a
/// template.
fn find(from: &OsStr) -> anyhow::Result<PathBuf> {
    let path = Path::new(from);
    if from.as_bytes().contains(&b'/') {
        return Ok(path.to_owned());
    }
    let found = match from.to_str() {
        Some(name) => block_on(async { Ok(Template::find(name).await) })?,
        None => Ok(None),
    };
    match found {
        Ok(Some(template)) => Ok(template.path),
        Ok(None) | Err(Error::Invalid(_)) if path.is_dir() => Ok(path.to_owned()),
        Ok(None) => bail!(
            "there is no template {from:?}: `vmcell template ls` lists them, and the path of a \
             snapshot contains a `/`"
        ),
        Err(error) => Err(error.into()),
    }
}
