use std::io::{self, BufReader, Read};
use std::path::Path;

use super::{ImageProblem, blobs::Blobs, compression::Compression, verified::Verified};
use crate::{Digest, Error};

/// A layer, whose bytes must have a digest when they are unpacked.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) place: Place,
    pub(super) unpacked: Digest,
}

#[derive(Clone, Debug)]
pub(super) enum Place {
    Blob {
        digest: Digest,
        size: u64,
        compression: Compression,
    },
    /// A file of an archive of Docker.
    File(String),
}

impl Layer {
    /// Opens its archive.
    pub(super) fn open<'a>(
        &'a self,
        blobs: &'a Blobs,
    ) -> Result<impl Read + use<'a>, ImageProblem> {
        let unreadable = |error: io::Error| {
            let inside = ImageProblem::inside(&error);
            inside
                .unwrap_or_else(|| ImageProblem::Source(format!("a layer cannot be read: {error}")))
        };
        let archive = match &self.place {
            Place::Blob {
                digest,
                size,
                compression,
            } => compression.reader(blobs.open(*digest, *size)?),
            Place::File(name) => {
                let file = blobs.open_file(Path::new(name)).map_err(unreadable)?;
                let file = file.ok_or_else(|| ImageProblem::MissingBlob(name.clone()))?;
                let mut file = BufReader::new(file);
                let compression = Compression::detect(&mut file).map_err(unreadable)?;
                compression.reader(file)
            }
        };
        let archive = archive.map_err(unreadable)?;
        Ok(Verified::new(archive, self.unpacked, None))
    }
}

/// Why a layer is not added.
pub(super) enum LayerError {
    Image(ImageProblem),
    /// It has nothing to do with the image.
    Host(Error),
}

/// Returns why a layer with this number, from 0, is not added.
pub(super) fn in_layer(number: usize, error: Error) -> LayerError {
    let reason = match &error {
        Error::ArchiveUnreadable { source } => match ImageProblem::inside(source) {
            Some(problem) => return LayerError::Image(problem),
            None => source.to_string(),
        },
        Error::Archive { .. } | Error::Path { .. } => error.to_string(),
        _ => return LayerError::Host(error),
    };
    LayerError::Image(ImageProblem::Layer {
        number: number + 1,
        reason,
    })
}
