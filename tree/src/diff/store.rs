//! Manifests as bytes: a mark, a version, and entries under zstd.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, ManifestEntry, ManifestKind, PERMISSIONS};
use crate::patch::BadName;

const MARK: [u8; 8] = *b"vmcellMF";
const VERSION: u8 = 1;

/// How many bytes there may be before compression, so that a small file cannot
/// fill the memory.
const MAX_SIZE: usize = 512 << 20;

/// How much memory zstd may look back in, as a power of two.
const MAX_WINDOW: u32 = 27;
const LEVEL: i32 = 3;

/// Why bytes are no manifest, or a manifest cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Something else than a manifest.
    #[error("not a manifest of vmcell")]
    NotManifest,
    /// It was written by a later version.
    #[error("the manifest has format {0}, which this version of vmcell does not know: update it")]
    Version(u8),
    /// It is damaged.
    #[error("the manifest is damaged: make a new one")]
    Damaged,
    /// It is too large.
    #[error("the manifest has more than {} MiB: keep fewer texts", MAX_SIZE >> 20)]
    TooLarge,
    /// There is a path in it that is not beneath the root.
    #[error("the manifest has a bad path: {0}")]
    BadName(#[from] BadName),
    /// There is no memory to compress it.
    #[error("the manifest cannot be compressed")]
    Compress(#[source] io::Error),
}

impl Manifest {
    /// The manifest as bytes to be stored.
    ///
    /// # Errors
    ///
    /// If it is too large to be read again.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let stored = Stored::from(self);
        let plain = postcard::to_allocvec(&stored).map_err(|_| ManifestError::TooLarge)?;
        if plain.len() > MAX_SIZE {
            return Err(ManifestError::TooLarge);
        }
        let packed = zstd::bulk::compress(&plain, LEVEL).map_err(ManifestError::Compress)?;
        Ok([MARK.as_slice(), &[VERSION], &packed].concat())
    }

    /// The manifest that was stored. The bytes may be anything: what is wrong
    /// with them is told, and no more memory is taken than a manifest may.
    ///
    /// # Errors
    ///
    /// If they are no manifest, or that of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestError> {
        let rest = bytes
            .strip_prefix(&MARK)
            .ok_or(ManifestError::NotManifest)?;
        let (version, packed) = rest.split_first().ok_or(ManifestError::Damaged)?;
        if *version != VERSION {
            return Err(ManifestError::Version(*version));
        }
        let plain = unpack(packed)?;
        let (stored, rest) =
            postcard::take_from_bytes::<Stored<'_>>(&plain).map_err(|_| ManifestError::Damaged)?;
        if !rest.is_empty() {
            return Err(ManifestError::Damaged);
        }
        stored.into_manifest()
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, ManifestError> {
    let damaged = |_| ManifestError::Damaged;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(damaged)?;
    decoder.window_log_max(MAX_WINDOW).map_err(damaged)?;
    let mut plain = Vec::new();
    let mut limited = decoder.take(MAX_SIZE as u64 + 1);
    limited.read_to_end(&mut plain).map_err(damaged)?;
    if plain.len() > MAX_SIZE {
        return Err(ManifestError::TooLarge);
    }
    Ok(plain)
}

/// What is stored. It is kept apart from the public types, so that these can
/// change.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    entries: Vec<StoredEntry<'a>>,
    /// All digests together: between the names they would only disturb the
    /// compression.
    digests: Vec<[u8; 32]>,
    #[serde(borrow)]
    texts: Vec<([u8; 32], &'a [u8])>,
}

#[derive(Serialize, Deserialize)]
struct StoredEntry<'a> {
    path: &'a [u8],
    mode: u32,
    #[serde(borrow)]
    kind: StoredKind<'a>,
}

/// Only ever append to these: their order is the format.
#[derive(Serialize, Deserialize)]
enum StoredKind<'a> {
    /// Its digest is the next.
    File {
        size: u64,
    },
    Directory,
    Symlink {
        target: &'a [u8],
    },
    Other,
}

impl<'a> From<&'a Manifest> for Stored<'a> {
    fn from(manifest: &'a Manifest) -> Self {
        let mut digests = Vec::new();
        let entries = manifest
            .entries
            .iter()
            .map(|(path, entry)| StoredEntry {
                path: path.as_os_str().as_bytes(),
                mode: entry.mode,
                kind: match &entry.kind {
                    ManifestKind::File { size, sha256 } => {
                        digests.push(*sha256);
                        StoredKind::File { size: *size }
                    }
                    ManifestKind::Directory => StoredKind::Directory,
                    ManifestKind::Symlink { target } => StoredKind::Symlink { target },
                    ManifestKind::Other => StoredKind::Other,
                },
            })
            .collect();
        let texts = manifest.texts.iter();
        Self {
            entries,
            digests,
            texts: texts
                .map(|(sha256, text)| (*sha256, text.as_slice()))
                .collect(),
        }
    }
}

impl Stored<'_> {
    fn into_manifest(self) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::new();
        let mut digests = self.digests.into_iter();
        let count = self.entries.len();
        for entry in self.entries {
            let kind = match entry.kind {
                StoredKind::File { size } => ManifestKind::File {
                    size,
                    sha256: digests.next().ok_or(ManifestError::Damaged)?,
                },
                StoredKind::Directory => ManifestKind::Directory,
                StoredKind::Symlink { target } => ManifestKind::Symlink {
                    target: target.to_vec(),
                },
                StoredKind::Other => ManifestKind::Other,
            };
            if entry.mode > PERMISSIONS {
                return Err(ManifestError::Damaged);
            }
            let mode = entry.mode;
            let path = Path::new(OsStr::from_bytes(entry.path));
            manifest.insert(path, ManifestEntry { kind, mode })?;
        }
        if digests.next().is_some() || manifest.len() != count {
            return Err(ManifestError::Damaged);
        }
        for (sha256, text) in self.texts {
            manifest.keep_text(sha256, text.to_vec());
        }
        Ok(manifest)
    }
}
