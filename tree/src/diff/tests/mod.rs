mod collector;
mod edits;
mod manifest;
mod patches;
mod size;

use std::path::PathBuf;

use super::{DiffOptions, FileDiff, Manifest, ManifestEntry, ManifestKind};

/// Returns a digest of a content. The tests need no cryptographic one.
fn digest(content: &[u8]) -> [u8; 32] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut digest = [0; 32];
    for (index, part) in (0u64..).zip(digest.chunks_mut(8)) {
        let mut hasher = DefaultHasher::new();
        (index, content).hash(&mut hasher);
        part.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    digest
}

fn file(mode: u32, content: &[u8]) -> ManifestEntry {
    ManifestEntry {
        kind: ManifestKind::File {
            size: content.len() as u64,
            sha256: digest(content),
        },
        mode,
    }
}

fn entry(kind: ManifestKind, mode: u32) -> ManifestEntry {
    ManifestEntry { kind, mode }
}

fn symlink(target: &[u8]) -> ManifestEntry {
    let target = target.to_vec();
    entry(ManifestKind::Symlink { target }, 0o777)
}

fn manifest<'a>(entries: impl IntoIterator<Item = (&'a str, ManifestEntry)>) -> Manifest {
    let mut manifest = Manifest::new();
    for (path, entry) in entries {
        manifest.insert(&PathBuf::from(path), entry).unwrap();
    }
    manifest
}
