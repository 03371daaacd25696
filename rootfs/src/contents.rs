use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use vmcell_archive::{ArchiveError, ArchiveReader, EntryKind, SparseMap};

use crate::scratch::ScratchFolder;
use crate::{ArchiveProblem, Content, Error, Tree};

/// Limit on the number of entries; no distribution comes near it.
const MAX_ENTRIES: u64 = 1_000_000;
/// Limit on the sum of all file sizes, including holes.
const MAX_BYTES: u64 = 64 << 30;

/// The contents of files from archives, in a private folder that is removed with the tree.
#[derive(Debug)]
pub(crate) struct Contents {
    scratch: Arc<ScratchFolder>,
    entries: u64,
    bytes: u64,
}

impl Contents {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            scratch: Arc::new(ScratchFolder::new()?),
            entries: 0,
            bytes: 0,
        })
    }

    /// Returns an empty tree that keeps the folder.
    pub(crate) fn tree(&self) -> Tree {
        Tree::with_contents_in(Arc::clone(&self.scratch))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Counts an entry, and refuses it if there are too many.
    pub(crate) fn count(&mut self, kind: &EntryKind) -> Result<(), ArchiveProblem> {
        let size = match kind {
            EntryKind::File {
                sparse: Some(map), ..
            } => map.length,
            EntryKind::File { stored, .. } => *stored,
            _ => 0,
        };
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.entries > MAX_ENTRIES || self.bytes > MAX_BYTES {
            return Err(ArchiveProblem::TooLarge);
        }
        Ok(())
    }

    /// Copies the content of the current entry, which was counted, into the folder.
    pub(crate) fn store<R: Read>(
        &mut self,
        reader: &mut ArchiveReader<R>,
        stored: u64,
        sparse: Option<SparseMap>,
    ) -> Result<Content, StoreError> {
        let path = self.scratch.path().join(self.entries.to_string());
        let write_error = |source| {
            StoreError::Write(Error::Write {
                path: path.clone(),
                source,
            })
        };
        let mut file = File::create_new(&path).map_err(write_error)?;
        let map = sparse.unwrap_or_else(|| SparseMap {
            parts: vec![(0, stored)],
            length: stored,
        });
        for (offset, length) in map.parts {
            file.seek(SeekFrom::Start(offset)).map_err(write_error)?;
            copy(reader, &mut file, length, write_error)?;
        }
        file.set_len(map.length).map_err(write_error)?;
        Ok(Content::HostFile(path))
    }
}

/// Why a content was not stored.
pub(crate) enum StoreError {
    Read(ArchiveError),
    Write(Error),
}

/// Copies bytes of an entry. Distinguishes read errors from write errors.
fn copy<R: Read>(
    reader: &mut ArchiveReader<R>,
    file: &mut File,
    mut left: u64,
    write_error: impl Fn(io::Error) -> StoreError,
) -> Result<(), StoreError> {
    let mut buffer = [0; 64 << 10];
    while left > 0 {
        let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let piece = &mut buffer[..length];
        reader.read_exact(piece).map_err(StoreError::Read)?;
        // Zeros are no reason to fill a disk.
        if piece.iter().all(|&byte| byte == 0) {
            file.seek(SeekFrom::Current(length as i64))
                .map_err(&write_error)?;
        } else {
            file.write_all(piece).map_err(&write_error)?;
        }
        left -= length as u64;
    }
    Ok(())
}
