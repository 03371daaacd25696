//! What `run` copies into its VM before the command.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use vmcell::{Error, Vm, tree::ArchiveFormat};
use vmcell_cli::{
    options::landing::last_name,
    show::{Progress, Summary},
};

use super::place::WORKSPACE;
use crate::failure::say;

/// Paths to copy into the workspace, checked to exist.
pub(crate) struct Pushes(Vec<Parcel>);

/// A path to copy into the workspace.
struct Parcel {
    from: PathBuf,
    kind: Kind,
}

enum Kind {
    /// Its contents are copied.
    Directory,
    /// It is unpacked.
    Archive,
    /// It is copied under this name.
    File(OsString),
}

impl Pushes {
    /// Checks the paths before a VM boots, so that a mistake fails at once.
    pub(crate) fn find(paths: Vec<PathBuf>) -> Result<Self, Error> {
        let parcels = paths.into_iter().map(|path| {
            Parcel::find(&path).map_err(|error| Error::BadFile {
                what: "--push",
                path,
                reason: error.to_string(),
            })
        });
        Ok(Self(parcels.collect::<Result<_, _>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Copies everything into the workspace, in the order of the command line.
    pub(crate) async fn run(self, vm: &Vm) -> Result<(), Error> {
        for parcel in self.0 {
            let losses = parcel.push(vm).await?.losses();
            losses.iter().for_each(|line| say(line));
        }
        Ok(())
    }
}

impl Parcel {
    fn find(path: &Path) -> io::Result<Self> {
        // A link would be copied as a link.
        let from = fs::canonicalize(path)?;
        let found = fs::metadata(&from)?;
        let kind = if found.is_dir() {
            Kind::Directory
        } else if !found.is_file() {
            let reason = "it is neither a directory nor a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        } else if ArchiveFormat::of_name(path).is_some() {
            Kind::Archive
        } else {
            // A path without a file name is a directory.
            Kind::File(last_name(path).unwrap_or_default())
        };
        // Fail now if it cannot be read.
        match kind {
            Kind::Directory => drop(fs::read_dir(&from)?),
            _ => drop(fs::File::open(&from)?),
        }
        Ok(Self { from, kind })
    }

    async fn push(self, vm: &Vm) -> Result<Summary, Error> {
        let files = vm.files();
        let workspace = Path::new(WORKSPACE);
        let mut push = match self.kind {
            Kind::Directory => files.push(self.from, workspace),
            Kind::Archive => files.push_archive(self.from, workspace)?,
            Kind::File(name) => files.push(self.from, workspace.join(name)),
        };
        let progress = Progress::new(None);
        if let Some(watcher) = progress.watcher() {
            push = push.progress(watcher);
        }
        Ok(push.run().await?.into())
    }
}
