use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{ImageProblem, tar_index::TarIndex, verified::Verified};
use crate::Digest;

/// The files of an image: those of a folder, or of an archive of one.
#[derive(Clone, Debug)]
pub(super) enum Blobs {
    Folder(PathBuf),
    Archive(TarIndex),
}

/// The largest document. Registries have the same limit.
const MAX_DOCUMENT: u64 = 4 << 20;

impl Blobs {
    /// Opens the files of a folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self::Folder(folder.to_owned())
    }

    /// Opens the files of an archive.
    pub(super) fn in_archive(file: &Path) -> Result<Self, ImageProblem> {
        let index = File::open(file).and_then(TarIndex::read);
        let index = index.map_err(|error| {
            ImageProblem::Source(format!("{} cannot be read: {error}", file.display()))
        })?;
        Ok(Self::Archive(index))
    }

    /// Opens a file by its name, if it is there.
    pub(super) fn open_file(&self, name: &Path) -> io::Result<Option<Box<dyn Read>>> {
        match self {
            Self::Folder(folder) => match File::open(folder.join(name)) {
                Ok(file) => Ok(Some(Box::new(file))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
            Self::Archive(index) => Ok(match index.open(name) {
                Some(part) => Some(Box::new(part)),
                None => None,
            }),
        }
    }

    /// Opens a blob. What is read is compared with its digest and its size.
    pub(super) fn open(
        &self,
        digest: Digest,
        size: u64,
    ) -> Result<impl Read + use<>, ImageProblem> {
        let name = format!("blobs/sha256/{digest}");
        let opened = self.open_file(Path::new(&name));
        let blob = opened
            .map_err(|error| ImageProblem::Source(format!("{name} cannot be read: {error}")))?
            .ok_or_else(|| ImageProblem::MissingBlob(format!("sha256:{digest}")))?;
        Ok(Verified::new(blob, digest, Some(size)))
    }

    /// Reads a small blob.
    pub(super) fn document(
        &self,
        document: &'static str,
        digest: Digest,
        size: u64,
    ) -> Result<Vec<u8>, ImageProblem> {
        if size > MAX_DOCUMENT {
            return Err(too_large(document));
        }
        let blob = self.open(digest, size)?;
        read_document(document, blob)
    }

    /// Reads a small file by its name, if it is there.
    pub(super) fn file(
        &self,
        document: &'static str,
        name: &Path,
    ) -> Result<Option<Vec<u8>>, ImageProblem> {
        let opened = self.open_file(name);
        let opened = opened.map_err(|error| unreadable(document, &error))?;
        opened.map(|file| read_document(document, file)).transpose()
    }
}

fn read_document(document: &'static str, reader: impl Read) -> Result<Vec<u8>, ImageProblem> {
    let mut bytes = Vec::new();
    let mut limited = reader.take(MAX_DOCUMENT + 1);
    limited
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(document, &error))?;
    match bytes.len() as u64 > MAX_DOCUMENT {
        true => Err(too_large(document)),
        false => Ok(bytes),
    }
}

fn too_large(document: &'static str) -> ImageProblem {
    ImageProblem::DocumentTooLarge {
        document,
        limit: MAX_DOCUMENT,
    }
}

/// Returns the problem that an error has inside, or one with its text.
fn unreadable(document: &'static str, error: &io::Error) -> ImageProblem {
    ImageProblem::inside(error).unwrap_or_else(|| ImageProblem::Document {
        document,
        reason: error.to_string(),
    })
}
