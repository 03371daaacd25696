use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{Entry, EntryKind, FileFailureKind, Files, ReadOptions, WalkOptions};
use crate::{
    diff::{Diff, DiffCollector, DiffLimits, DiffOptions, Manifest, ManifestEntry, ManifestKind},
    error::Error,
    result_budget::ResultBudget,
};

/// Which files a manifest contains, and whether it keeps their texts.
#[derive(Clone, Debug, Default)]
pub struct ManifestOptions {
    walk: WalkOptions,
    texts: u64,
}

impl ManifestOptions {
    /// Includes every path, and no texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Excludes paths that match a pattern in `.gitignore` syntax. Can be
    /// called several times.
    #[must_use]
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.walk = self.walk.exclude(line);
        self
    }

    /// Also keeps texts, up to this many bytes together, so that a later diff
    /// can show the changed lines.
    #[must_use]
    pub const fn keep_texts(mut self, bytes: u64) -> Self {
        self.texts = bytes;
        self
    }
}

/// The size limit for a text that is kept.
const MAX_TEXT: u64 = 1 << 20;

impl Files {
    /// The maximum number of entries of a [manifest](Self::manifest).
    pub const MAX_MANIFEST: usize = 1_000_000;

    /// The maximum memory that a [manifest](Self::manifest) takes for its
    /// entries, in addition to its texts: 256 MiB.
    pub const MAX_MANIFEST_BYTES: usize = 256 << 20;

    /// Lists everything below a directory: paths, kinds, permissions, sizes,
    /// link targets, and the SHA-256 of each file, which the guest computes.
    /// The limits are [a million entries](Self::MAX_MANIFEST) and [256
    /// MiB](Self::MAX_MANIFEST_BYTES), plus the texts of
    /// [`keep_texts`](ManifestOptions::keep_texts).
    ///
    /// # Errors
    /// [`Error::File`] if the directory does not exist, or any entry in it
    /// cannot be read. [`Error::ResultLimit`] if a limit is exceeded.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn manifest(
        &self,
        directory: impl AsRef<Path>,
        options: ManifestOptions,
    ) -> Result<Manifest, Error> {
        let directory = directory.as_ref();
        let top = self.relative_path(directory)?.to_owned();
        let walk = options.walk.with_sha256().without_names();
        let mut entries = self.walk(directory, walk).await?;
        let mut manifest = Manifest::new();
        let mut texts = Vec::new();
        let mut budget = ResultBudget::new(
            "the manifest",
            Self::MAX_MANIFEST,
            Self::MAX_MANIFEST_BYTES,
            "exclude some files, or name a directory below",
        );
        while let Some(entry) = entries.next().await? {
            budget.add(entry.memory_size())?;
            let path = match entry.path.strip_prefix(&top) {
                Ok(path) => path.to_owned(),
                Err(_) => return Err(Error::unexpected_reply()),
            };
            if entry.size <= MAX_TEXT.min(options.texts) && entry.kind == EntryKind::File {
                budget.add_bytes(entry.path.as_os_str().len())?;
                texts.push((entry.path.clone(), entry.size, entry.sha256));
            }
            let inserted = manifest.insert(&path, manifest_entry(entry)?);
            inserted.map_err(|_| Error::unexpected_reply())?;
        }
        if let Some(problem) = entries.problems().first() {
            return Err(problem.failure.clone().into());
        }
        drop(entries);
        self.keep_texts(&mut manifest, texts, options.texts).await?;
        Ok(manifest)
    }

    /// Compares a directory with an earlier manifest. Shows the changed lines
    /// of files whose texts the manifest has kept; other changed files are only
    /// named.
    ///
    /// All shown lines take at most 64 MiB together. Further files are only
    /// named ([`PatchDetail::NameOnly`](crate::diff::PatchDetail::NameOnly)):
    /// compare a subdirectory to see them.
    ///
    /// # Errors
    /// See [`manifest`](Self::manifest). [`Error::Invalid`] if even the names
    /// take more than 128 MiB.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn diff(
        &self,
        directory: impl AsRef<Path>,
        since: &Manifest,
        options: ManifestOptions,
    ) -> Result<Diff, Error> {
        let directory = directory.as_ref();
        let now = self.manifest(directory, options.keep_texts(0)).await?;
        let shown = DiffOptions::default();
        let limits = DiffLimits::default();
        let mut collector = DiffCollector::new(shown, limits);
        for change in Manifest::compare(since, &now) {
            let old = digest_of(change.old.as_ref()).and_then(|digest| since.text(&digest));
            // In a file that existed before, maybe only few lines have changed.
            let least = match old {
                Some(_) => 0,
                None => size_of(change.new.as_ref()),
            };
            let new = match digest_of(change.new.as_ref()) {
                // Without the old text, no lines of the new one can be shown.
                Some(_)
                    if (old.is_some() || !is_file(change.old.as_ref()))
                        && collector.has_room(least) =>
                {
                    self.text(&directory.join(&change.path), shown.max_size as u64)
                        .await?
                }
                _ => None,
            };
            let added = collector.add(change, old, new.as_deref());
            added.map_err(|_| {
                Error::Invalid(format!(
                    "the differences take more than {} MiB: compare a directory within, or \
                     exclude some",
                    limits.total_bytes >> 20
                ))
            })?;
        }
        Ok(collector.finish())
    }

    async fn keep_texts(
        &self,
        manifest: &mut Manifest,
        texts: Vec<(PathBuf, u64, Option<[u8; 32]>)>,
        mut left: u64,
    ) -> Result<(), Error> {
        for (path, size, digest) in texts {
            let (Some(rest), Some(digest)) = (left.checked_sub(size), digest) else {
                continue;
            };
            if manifest.text(&digest).is_some() {
                continue;
            }
            // A text that has changed since, or is longer than announced, does
            // not belong to the manifest.
            let text = self.text(&path, size).await?;
            if let Some(text) = text.filter(|text| <[u8; 32]>::from(Sha256::digest(text)) == digest)
            {
                manifest.keep_text(digest, text);
                left = rest;
            }
        }
        Ok(())
    }

    /// Reads a file. Returns `None` if it does not exist or is too large.
    async fn text(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, Error> {
        match self.read_with(path, ReadOptions::new().limit(max)).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::File(failure))
                if matches!(
                    failure.kind,
                    FileFailureKind::NotFound | FileFailureKind::Limit | FileFailureKind::Invalid
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn manifest_entry(entry: Entry) -> Result<ManifestEntry, Error> {
    let kind = match (entry.kind, entry.target, entry.sha256) {
        (EntryKind::File, _, Some(sha256)) => ManifestKind::File {
            size: entry.size,
            sha256,
        },
        (EntryKind::File, _, None) => return Err(Error::unexpected_reply()),
        (EntryKind::Directory, ..) => ManifestKind::Directory,
        (EntryKind::Symlink, Some(target), _) => ManifestKind::Symlink {
            target: target.as_os_str().as_bytes().to_vec(),
        },
        _ => ManifestKind::Other,
    };
    Ok(ManifestEntry {
        kind,
        mode: entry.mode,
    })
}

fn is_file(entry: Option<&ManifestEntry>) -> bool {
    digest_of(entry).is_some()
}

fn digest_of(entry: Option<&ManifestEntry>) -> Option<[u8; 32]> {
    match entry?.kind {
        ManifestKind::File { sha256, .. } => Some(sha256),
        _ => None,
    }
}

fn size_of(entry: Option<&ManifestEntry>) -> u64 {
    match entry.map(|entry| &entry.kind) {
        Some(ManifestKind::File { size, .. }) => *size,
        _ => 0,
    }
}
