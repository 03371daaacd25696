use std::{
    collections::HashMap,
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::sparse::{self, Digest};

/// A file that a snapshot needs and does not contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRecord {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) sha256: Digest,
    identity: FileIdentity,
}

/// Identifies the contents of a file on one machine, without reading them: a write
/// changes its time. The time of a change of its metadata does not count, because a
/// workspace gives its image another name, which changes that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FileIdentity {
    device: u64,
    inode: u64,
    modified_ns: i128,
}

impl FileRecord {
    /// Records a file. Its digest is computed once in a program.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = FileIdentity::of(&metadata);
        Ok(Self {
            path: path.to_owned(),
            size: metadata.len(),
            sha256: cached_digest(&file, identity)?,
            identity,
        })
    }

    /// Returns why a file is not the recorded one, or `None` if it is. Its contents are
    /// read only if it could have been changed.
    pub(super) fn difference(&self, path: &Path) -> io::Result<Option<String>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = FileIdentity::of(&metadata);
        if metadata.len() != self.size {
            let size = metadata.len();
            return Ok(Some(format!("had {} bytes and has {size} now", self.size)));
        }
        if identity == self.identity || cached_digest(&file, identity)? == self.sha256 {
            return Ok(None);
        }
        Ok(Some("has other contents now".to_owned()))
    }
}

/// Returns the digest of a file. This program reads each file once.
#[cfg(feature = "tool")]
pub(crate) fn file_digest(path: &Path) -> io::Result<Digest> {
    let file = File::open(path)?;
    let identity = FileIdentity::of(&file.metadata()?);
    cached_digest(&file, identity)
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        let seconds = i128::from(metadata.mtime());
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_ns: seconds * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }
}

/// Returns the digest of a file. This program reads each file once.
fn cached_digest(file: &File, identity: FileIdentity) -> io::Result<Digest> {
    static DIGESTS: LazyLock<Mutex<HashMap<FileIdentity, Digest>>> = LazyLock::new(Mutex::default);
    let digests = || DIGESTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(digest) = digests().get(&identity) {
        return Ok(*digest);
    }
    let digest = sparse::digest(file)?;
    digests().insert(identity, digest);
    Ok(digest)
}
