//! Files that `debugfs` reads while it fills an image.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::scratch::ScratchFolder;
use crate::script::fits_on_a_line;
use crate::{Content, Error, Kind, Tree};

/// Limit on a path in a command: a line has room for it and a name, even if quoting doubles both.
const MAX_PATH_ON_A_LINE: usize = 2048;

/// A temporary folder with the files that `debugfs` needs: contents that are in memory, values of
/// extended attributes, and links to host files whose paths do not fit in a command. `debugfs`
/// runs in it, so that commands use short relative names.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: ScratchFolder,
    /// The names of contents in the folder. That of others is their path.
    files: BTreeMap<PathBuf, PathBuf>,
    attributes: BTreeMap<(PathBuf, OsString), PathBuf>,
}

impl Staging {
    /// Stages all contents of a tree. Fails if one of them cannot be read.
    pub(crate) fn new(tree: &Tree) -> Result<Self, Error> {
        let mut staging = Self {
            folder: ScratchFolder::new()?,
            files: BTreeMap::new(),
            attributes: BTreeMap::new(),
        };
        for (path, node) in tree.iter() {
            if let Kind::File(content) = &node.kind
                && let Some(name) = staging.stage(content)?
            {
                staging.files.insert(path.to_owned(), name);
            }
            for (name, value) in &node.xattrs {
                let file = PathBuf::from(format!("attribute-{}", staging.attributes.len()));
                staging.write(&file, value)?;
                staging
                    .attributes
                    .insert((path.to_owned(), name.clone()), file);
            }
        }
        Ok(staging)
    }

    /// Returns the folder to run `debugfs` in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a file in the folder.
    pub(crate) fn create(&self, name: &Path) -> Result<File, Error> {
        let path = self.folder.path().join(name);
        File::create(&path).map_err(|source| Error::Write { path, source })
    }

    /// Writes a file into the folder.
    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), Error> {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).map_err(|source| Error::Write { path, source })
    }

    /// Returns where the content of a file of the image is, relative to the folder.
    pub(crate) fn source(&self, path: &Path, content: &Content) -> Option<PathBuf> {
        match (self.files.get(path), content) {
            (Some(name), _) => Some(name.clone()),
            (None, Content::HostFile(path)) => std::path::absolute(path).ok(),
            (None, Content::Bytes(_)) => None,
        }
    }

    /// Returns where the value of an extended attribute is, relative to the folder.
    pub(crate) fn attribute(&self, path: &Path, name: &OsStr) -> Option<&Path> {
        self.attributes
            .get(&(path.to_owned(), name.to_owned()))
            .map(PathBuf::as_path)
    }

    /// Returns the name that a content has in the folder, if it needs one there.
    fn stage(&self, content: &Content) -> Result<Option<PathBuf>, Error> {
        let name = PathBuf::from(format!("content-{}", self.files.len()));
        match content {
            Content::Bytes(bytes) => {
                self.write(&name, bytes)?;
                Ok(Some(name))
            }
            Content::HostFile(path) => {
                let read_error = |source| Error::Read {
                    path: path.clone(),
                    source,
                };
                let absolute = std::path::absolute(path).map_err(read_error)?;
                let found = fs::metadata(&absolute).map_err(read_error)?;
                if !found.is_file() {
                    return Err(read_error(std::io::ErrorKind::InvalidInput.into()));
                }
                File::open(&absolute).map_err(read_error)?;
                let bytes = absolute.as_os_str().as_bytes();
                if bytes.len() < MAX_PATH_ON_A_LINE && fits_on_a_line(bytes) {
                    return Ok(None);
                }
                let link = self.folder.path().join(&name);
                symlink(&absolute, &link).map_err(|source| Error::Write { path: link, source })?;
                Ok(Some(name))
            }
        }
    }
}
