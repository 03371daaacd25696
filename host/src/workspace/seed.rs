use std::{fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{record::SeedRecord, specification::WORKSPACE};
use crate::{Vm, error::Error};

/// How much of a seed was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeedProgress {
    /// The number of entries so far.
    pub entries: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
}

/// Called while a seed is copied.
pub(super) type OnSeed = Option<Box<dyn Fn(SeedProgress) + Send>>;

/// What a workspace is filled with when it is created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seed {
    path: PathBuf,
    is_archive: bool,
}

impl Seed {
    /// Checks that it can be read.
    pub(super) fn check(path: PathBuf) -> Result<Self, Error> {
        let check = || -> io::Result<Self> {
            // A link would be copied as a link.
            let path = fs::canonicalize(&path)?;
            let is_archive = !fs::metadata(&path)?.is_dir();
            match is_archive {
                true if !has_archive_name(&path) => {
                    let reason = "is neither a folder nor a .tar, .tar.gz, .tgz or .tar.zst";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
                }
                true => drop(fs::File::open(&path)?),
                false => drop(fs::read_dir(&path)?),
            }
            Ok(Self { path, is_archive })
        };
        check().map_err(|error| Error::BadFile {
            what: "seed",
            path: path.clone(),
            reason: error.to_string(),
        })
    }

    /// Copies it into the guest, and waits until it is on its disk.
    pub(super) async fn push(self, vm: &Vm, progress: OnSeed) -> Result<SeedRecord, Error> {
        let files = vm.files();
        let push = match self.is_archive {
            #[cfg(feature = "archive")]
            true => files.push_archive(&self.path, WORKSPACE)?,
            _ => files.push(&self.path, WORKSPACE),
        };
        let push = match progress {
            Some(on_seed) => push.progress(move |progress| {
                on_seed(SeedProgress {
                    entries: progress.entries,
                    bytes: progress.bytes,
                });
            }),
            None => push,
        };
        let pushed = push.run().await?;
        Ok(SeedRecord {
            path: Some(self.path),
            is_archive: self.is_archive,
            entries: pushed.entries,
            bytes: pushed.bytes,
        })
    }
}

#[cfg(feature = "archive")]
fn has_archive_name(path: &std::path::Path) -> bool {
    crate::tree::ArchiveFormat::from_path(path).is_some()
}

/// Without the feature `archive`, none can be read.
#[cfg(not(feature = "archive"))]
fn has_archive_name(_: &std::path::Path) -> bool {
    false
}
