//! The stored format of a manifest: magic bytes, a version, and the entries,
//! compressed with zstd.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, ManifestEntry, ManifestKind, PERMISSIONS};
use crate::patch::BadName;

const MAGIC: [u8; 8] = *b"vmcellMF";
const VERSION: u8 = 1;

/// The size limit before compression, so that a small file cannot fill the
/// memory.
const MAX_SIZE: usize = 512 << 20;

/// The limit for zstd's window, as a power of two.
const MAX_WINDOW_LOG: u32 = 27;
const COMPRESSION_LEVEL: i32 = 3;

/// Why a manifest cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The bytes are not a manifest.
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
    /// A path is not below the root.
    #[error("the manifest has a bad path: {0}")]
    BadName(#[from] BadName),
    /// Compression failed, for example for lack of memory.
    #[error("the manifest cannot be compressed")]
    Compress(#[source] io::Error),
}

impl Manifest {
    /// Encodes the manifest for storing.
    ///
    /// # Errors
    ///
    /// If the result would be too large for [`from_bytes`](Self::from_bytes).
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let stored = Stored::from(self);
        let plain = postcard::to_allocvec(&stored).map_err(|_| ManifestError::TooLarge)?;
        if plain.len() > MAX_SIZE {
            return Err(ManifestError::TooLarge);
        }
        let compressed =
            zstd::bulk::compress(&plain, COMPRESSION_LEVEL).map_err(ManifestError::Compress)?;
        Ok([MAGIC.as_slice(), &[VERSION], &compressed].concat())
    }

    /// Decodes a stored manifest. Accepts untrusted bytes: it takes no more
    /// memory than the largest valid manifest.
    ///
    /// # Errors
    ///
    /// If the bytes are not a manifest, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestError> {
        let rest = bytes
            .strip_prefix(&MAGIC)
            .ok_or(ManifestError::NotManifest)?;
        let (version, compressed) = rest.split_first().ok_or(ManifestError::Damaged)?;
        if *version != VERSION {
            return Err(ManifestError::Version(*version));
        }
        let plain = decompress(compressed)?;
        let (stored, rest) =
            postcard::take_from_bytes::<Stored<'_>>(&plain).map_err(|_| ManifestError::Damaged)?;
        if !rest.is_empty() {
            return Err(ManifestError::Damaged);
        }
        stored.into_manifest()
    }
}

fn decompress(compressed: &[u8]) -> Result<Vec<u8>, ManifestError> {
    let damaged = |_| ManifestError::Damaged;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed).map_err(damaged)?;
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(damaged)?;
    let mut plain = Vec::new();
    let mut limited = decoder.take(MAX_SIZE as u64 + 1);
    limited.read_to_end(&mut plain).map_err(damaged)?;
    if plain.len() > MAX_SIZE {
        return Err(ManifestError::TooLarge);
    }
    Ok(plain)
}

/// The stored form. It is separate from the public types, so that those can
/// change.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    entries: Vec<StoredEntry<'a>>,
    /// All digests in one place: between the names they would make compression
    /// worse.
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

/// Only append variants: their order is part of the format.
#[derive(Serialize, Deserialize)]
enum StoredKind<'a> {
    /// The digest is the next one of [`Stored::digests`].
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
