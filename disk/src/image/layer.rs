use std::{
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::PathBuf,
};

use super::{
    error::ImageError,
    format::Format,
    qcow2::{Backing, Header, MAX_IMAGE_SIZE},
    source::Source,
};

/// One file of an image: the image itself or a backing file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layer {
    /// Its path, with all symlinks resolved.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The size of the disk in bytes, as this layer records it.
    pub size: u64,
    /// Number of bytes allocated on the host's file system.
    pub allocated: u64,
    /// Whether it has no write permission: see [`seal`](super::seal()).
    pub sealed: bool,
    /// Whether QEMU found it inconsistent and marked it as corrupt: a part of
    /// its data may be wrong. `qemu-img check -r all` repairs it.
    pub corrupt: bool,
}

/// An open layer.
#[derive(Debug)]
pub(super) struct OpenLayer {
    pub(super) source: Source,
    pub(super) size: u64,
    /// The qcow2 header. `None` for a raw file.
    pub(super) header: Option<Header>,
}

impl OpenLayer {
    pub(super) fn open(source: Source, format: Format) -> Result<Self, ImageError> {
        let header = match format {
            Format::Raw => None,
            Format::Qcow2 => Some(Header::read(&source)?),
        };
        let size = header.as_ref().map_or(source.length, |header| header.size);
        if size > MAX_IMAGE_SIZE {
            return Err(ImageError::TooLarge {
                path: source.path,
                size,
                limit: MAX_IMAGE_SIZE,
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

    /// Reads data from the layer's file.
    pub(super) fn read_data(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.header {
            None => self.source.file.read_exact_at(buffer, offset),
            // The file may end within its last cluster.
            Some(_) => self.source.read_padded(offset, buffer),
        }
    }

    /// Returns the public description of the layer.
    pub(super) fn describe(&self) -> io::Result<Layer> {
        let metadata = self.source.file.metadata()?;
        Ok(Layer {
            path: self.source.path.clone(),
            format: self.format(),
            size: self.size,
            // `st_blocks` counts units of 512 bytes: stat(2).
            allocated: metadata.blocks() * 512,
            sealed: metadata.mode() & 0o222 == 0,
            corrupt: self.header.as_ref().is_some_and(|header| header.corrupt),
        })
    }
}
