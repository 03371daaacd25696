use std::{
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::PathBuf,
};

use super::{
    error::ImageError,
    format::Format,
    qcow2::{Backing, Header, MOST_BYTES},
    source::Source,
};

/// One file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layer {
    /// Where it is, with all symlinks resolved.
    pub path: PathBuf,
    /// How it is stored.
    pub format: Format,
    /// The size of the disk that it shows.
    pub size: u64,
    /// How many bytes it takes of the file system.
    pub allocated: u64,
    /// Nobody may write it: see [`seal`](super::seal()).
    pub sealed: bool,
}

/// A file of an image that is open.
#[derive(Debug)]
pub(super) struct OpenLayer {
    pub(super) source: Source,
    pub(super) size: u64,
    /// What a qcow2 file begins with; a raw one has none.
    pub(super) header: Option<Header>,
}

impl OpenLayer {
    pub(super) fn open(source: Source, format: Format) -> Result<Self, ImageError> {
        let header = match format {
            Format::Raw => None,
            Format::Qcow2 => Some(Header::read(&source)?),
        };
        let size = header.as_ref().map_or(source.length, |header| header.size);
        if size > MOST_BYTES {
            return Err(ImageError::TooLarge {
                path: source.path,
                size,
                limit: MOST_BYTES,
            });
        }
        Ok(Self {
            source,
            size,
            header,
        })
    }

    pub(super) fn format(&self) -> Format {
        match self.header {
            Some(_) => Format::Qcow2,
            None => Format::Raw,
        }
    }

    pub(super) fn backing(&self) -> Option<&Backing> {
        self.header.as_ref()?.backing.as_ref()
    }

    /// Bytes of the layer's file, where data was found.
    pub(super) fn read_data(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.header {
            None => self.source.file.read_exact_at(buffer, offset),
            // The file need not go on to the end of its last cluster.
            Some(_) => self.source.read_padded(offset, buffer),
        }
    }

    /// What there is to tell about it.
    pub(super) fn describe(&self) -> io::Result<Layer> {
        let metadata = self.source.file.metadata()?;
        Ok(Layer {
            path: self.source.path.clone(),
            format: self.format(),
            size: self.size,
            // Blocks of stat(2) have 512 bytes.
            allocated: metadata.blocks() * 512,
            sealed: metadata.mode() & 0o222 == 0,
        })
    }
}
