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

/// Which files a manifest tells of, and what it keeps of them.
#[derive(Clone, Debug, Default)]
pub struct ManifestOptions {
    walk: WalkOptions,
    texts: u64,
}

impl ManifestOptions {
    /// Every path, and no texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Not what a line like those of a `.gitignore` file names. Can be called
    /// many times.
    #[must_use]
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.walk = self.walk.exclude(line);
        self
    }

    /// Texts are kept too, so many bytes of them together, so that later the
    /// lines can be shown that changed.
    #[must_use]
    pub const fn keep_texts(mut self, bytes: u64) -> Self {
        self.texts = bytes;
        self
    }
}

/// A longer text is not kept.
const MAX_TEXT: u64 = 1 << 20;

impl Files {
    /// The most entries of a [manifest](Self::manifest).
    pub const MAX_MANIFEST: usize = 1_000_000;

    /// The most memory that a [manifest](Self::manifest) takes for them, beside
    /// its texts: 256 MiB.
    pub const MAX_MANIFEST_BYTES: usize = 256 << 20;

    /// What is below a directory: paths, kinds, permissions, sizes, links, and
    /// the SHA-256 of each file, which the guest computes. There may be at most
    /// [a million entries](Self::MAX_MANIFEST), and no more than fit into
    /// [256 MiB](Self::MAX_MANIFEST_BYTES). The texts of
    /// [`keep_texts`](ManifestOptions::keep_texts) come on top of that.
    ///
    /// # Errors
    /// [`Error::File`]: the directory is not there, or something in it cannot
    /// be read. A manifest is of everything. [`Error::ResultLimit`]: there is
    /// more.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn manifest(
        &self,
        directory: impl AsRef<Path>,
        options: &ManifestOptions,
    ) -> Result<Manifest, Error> {
        let directory = directory.as_ref();
        let top = self.below(directory)?.to_owned();
        let walk = options.walk.clone().with_sha256().without_names();
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
            budget.add(entry.memory())?;
            let path = match entry.path.strip_prefix(&top) {
                Ok(path) => path.to_owned(),
                Err(_) => return Err(Error::unexpected_reply()),
            };
            if entry.size <= MAX_TEXT.min(options.texts) && entry.kind == EntryKind::File {
                budget.add_bytes(entry.path.as_os_str().len())?;
                texts.push((entry.path.clone(), entry.size, entry.sha256));
            }
            let inserted = manifest.insert(&path, noted(entry)?);
            inserted.map_err(|_| Error::unexpected_reply())?;
        }
        if let Some(problem) = entries.problems().first() {
            return Err(problem.failure.clone().into());
        }
        drop(entries);
        self.keep_texts(&mut manifest, texts, options.texts).await?;
        Ok(manifest)
    }

    /// What has changed below a directory since a manifest was made. It shows
    /// the lines of those texts that the manifest has kept; other files that
    /// changed are named.
    ///
    /// All lines that are shown take 64 MiB together at most. Files that would
    /// go beyond are named too ([`Shown::Named`](crate::diff::Shown::Named)):
    /// compare a directory within to see them.
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
        options: &ManifestOptions,
    ) -> Result<Diff, Error> {
        let directory = directory.as_ref();
        let without_texts = options.clone().keep_texts(0);
        let now = self.manifest(directory, &without_texts).await?;
        let shown = DiffOptions::default();
        let limits = DiffLimits::default();
        let mut collector = DiffCollector::new(shown, limits);
        for change in Manifest::compare(since, &now) {
            let old = digest_of(change.old.as_ref()).and_then(|digest| since.text(&digest));
            // Of a file that was there, maybe only few lines have changed.
            let least = match old {
                Some(_) => 0,
                None => size_of(change.new.as_ref()),
            };
            let new = match digest_of(change.new.as_ref()) {
                // Without the old text there is nothing to show of the new one.
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
                    limits.patches >> 20
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
            // What has changed since is not what the manifest tells of.
            // Nor is what is longer than the guest said.
            let text = self.text(&path, size).await?;
            if let Some(text) = text.filter(|text| <[u8; 32]>::from(Sha256::digest(text)) == digest)
            {
                manifest.keep_text(digest, text);
                left = rest;
            }
        }
        Ok(())
    }

    /// The bytes of a file, if it is there and not too large.
    async fn text(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>, Error> {
        match self.read_with(path, ReadOptions::new().limit(most)).await {
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

fn noted(entry: Entry) -> Result<ManifestEntry, Error> {
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
