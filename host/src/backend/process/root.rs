use std::{
    fs::File,
    path::{Path, PathBuf},
};

use crate::{backend::Root, error::Error};

/// The files of the lower layer of a VM's root. They are not removed while this
/// lives.
#[derive(Debug)]
pub(super) struct RootFiles {
    pub(super) directory: PathBuf,
    /// Keeps the unpacked files of an image from being removed.
    _lock: Option<File>,
}

impl RootFiles {
    pub(super) fn prepare(root: &Root) -> Result<Self, Error> {
        match root {
            Root::Image(image) => {
                let (directory, lock) = super::image_cache::cached_tree(image)?;
                Ok(Self {
                    directory,
                    _lock: Some(lock),
                })
            }
            Root::Directory(path) => Ok(Self {
                directory: directory(path)?,
                _lock: None,
            }),
            Root::Disk { .. } => Err(Error::Invalid(
                "the backend process cannot write to a disk: boot from an image or a directory, \
                 or choose a backend that is a VM"
                    .to_owned(),
            )),
        }
    }
}

fn directory(path: &Path) -> Result<PathBuf, Error> {
    let bad = |reason: String| Error::BadFile {
        what: "directory",
        path: path.to_owned(),
        reason,
    };
    let found = path
        .canonicalize()
        .map_err(|error| bad(error.to_string()))?;
    match found.is_dir() {
        true => Ok(found),
        false => Err(bad("is not a directory".to_owned())),
    }
}
