//! What `run` brings into its VM before the command.

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

/// Trees for the workspace, found to be there.
pub(crate) struct Pushes(Vec<Parcel>);

/// One of them.
struct Parcel {
    from: PathBuf,
    kind: Kind,
}

enum Kind {
    /// What is in it goes into the workspace.
    Directory,
    /// It is unpacked there.
    Archive,
    /// It goes there under its name.
    File(OsString),
}

impl Pushes {
    /// Looks at what is to be pushed: before a VM is booted, so that a path
    /// where nothing is costs no time.
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

    /// Brings everything into the workspace, in the order that was asked for.
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
        // A link would be pushed as a link.
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
            // A path that ends without a name is a directory.
            Kind::File(last_name(path).unwrap_or_default())
        };
        // What may not be read is known now.
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
