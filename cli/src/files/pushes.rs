//! What `run` copies into its VM before the command.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use vmcell::{Error, Vm, files::Files, tree::ArchiveFormat};
use vmcell_cli::{
    options::copy_target::last_component,
    show::{Progress, Summary},
};

use super::{path::WORKSPACE, push_digest};
use crate::{digest::PartsDigest, failure::report};

/// Paths to copy into the workspace, checked to exist.
#[derive(Clone, Default)]
pub(crate) struct Pushes(Vec<PushSource>);

/// A path to copy into a directory of a VM.
#[derive(Clone)]
pub(crate) struct PushSource {
    from: PathBuf,
    kind: SourceKind,
}

#[derive(Clone)]
enum SourceKind {
    /// Its contents are copied.
    Directory,
    /// It is unpacked.
    Archive,
    /// It is copied under this name.
    File(OsString),
}

impl Pushes {
    /// Checks the paths before a VM boots, so that a mistake fails at once.
    pub(crate) fn check(paths: Vec<PathBuf>) -> Result<Self, Error> {
        let sources = paths.into_iter().map(|path| {
            PushSource::check(&path).map_err(|error| Error::BadFile {
                what: "--push",
                path,
                reason: error.to_string(),
            })
        });
        Ok(Self(sources.collect::<Result<_, _>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Copies everything into the workspace, in the order of the command line.
    pub(crate) async fn run(&self, vm: &Vm) -> Result<(), Error> {
        for source in &self.0 {
            let pushed = source.push(&vm.files(), Path::new(WORKSPACE)).await?;
            let warnings = pushed.warnings();
            warnings.iter().for_each(|line| report(line));
        }
        Ok(())
    }

    /// Adds names, modes and contents to a digest.
    pub(crate) fn add_to(&self, digest: &mut PartsDigest) -> Result<(), Error> {
        for source in &self.0 {
            let added = source.add_to(digest);
            added.map_err(|error| Error::BadFile {
                what: "--push",
                path: source.from.clone(),
                reason: error.to_string(),
            })?;
        }
        Ok(())
    }
}

impl PushSource {
    pub(crate) fn check(path: &Path) -> io::Result<Self> {
        // A link would be copied as a link.
        let from = fs::canonicalize(path)?;
        let metadata = fs::metadata(&from)?;
        let kind = if metadata.is_dir() {
            SourceKind::Directory
        } else if !metadata.is_file() {
            let reason = "it is neither a directory nor a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        } else if ArchiveFormat::from_path(path).is_some() {
            SourceKind::Archive
        } else {
            // A path without a file name is a directory.
            SourceKind::File(last_component(path).unwrap_or_default())
        };
        // Fail now if it cannot be read.
        match kind {
            SourceKind::Directory => drop(fs::read_dir(&from)?),
            _ => drop(fs::File::open(&from)?),
        }
        Ok(Self { from, kind })
    }

    fn add_to(&self, digest: &mut PartsDigest) -> io::Result<()> {
        match &self.kind {
            SourceKind::Directory => digest.add("push directory", ""),
            // The format is in the name.
            SourceKind::Archive => {
                let name = self.from.file_name().unwrap_or_default();
                digest.add("push archive", name.as_bytes());
            }
            SourceKind::File(name) => digest.add("push file", name.as_bytes()),
        }
        push_digest::add_tree(digest, &self.from)
    }

    /// Copies it into a directory.
    pub(crate) async fn push(&self, files: &Files, directory: &Path) -> Result<Summary, Error> {
        let mut push = match &self.kind {
            SourceKind::Directory => files.push(&self.from, directory),
            SourceKind::Archive => files.push_archive(&self.from, directory)?,
            SourceKind::File(name) => files.push(&self.from, directory.join(name)),
        };
        let progress = Progress::new(None);
        if let Some(callback) = progress.callback() {
            push = push.progress(callback);
        }
        Ok(push.run().await?.into())
    }
}
