use std::{
    io,
    path::{Path, PathBuf},
};

use super::foreign_format::ForeignFormat;

/// An error from opening, reading or creating an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// A file cannot be opened or read.
    #[error("cannot read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },

    /// A file cannot be created or changed. Partial output is removed.
    #[error("cannot write {path:?}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },

    /// The path is not a regular file.
    #[error("{path:?} is not a regular file: only regular files can be images")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },

    /// Another process may be writing to the image, or relies on it not being
    /// written.
    #[error(
        "{path:?} is in use: stop the VM that uses it, or allow images in use to read it anyway"
    )]
    InUse {
        /// The image, or one of its backing files.
        path: PathBuf,
    },

    /// The file system of the host does not support the locks that show whether
    /// the image is in use.
    #[error("cannot determine whether {path:?} is in use: allow images in use to read it anyway")]
    Lock {
        /// The image, or one of its backing files.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },

    /// The image was opened for a VM to write to, but it is raw. What a guest
    /// writes to a raw disk could later be taken for another format, so the
    /// writable layer must be qcow2.
    #[error("{path:?} is a raw image: create a qcow2 child of it for the VM to write to")]
    Raw {
        /// The image.
        path: PathBuf,
    },

    /// The image was opened for a VM to write to, but it is sealed.
    #[error("{path:?} is sealed: create a child of it for the VM to write to")]
    Sealed {
        /// The layer.
        path: PathBuf,
    },

    /// A backing file is outside of the allowed directories.
    #[error("the backing file {path:?} is not in an allowed directory: allow it if it may be read")]
    BackingNotAllowed {
        /// Its real path.
        path: PathBuf,
    },

    /// The name of a backing file is not a path but a protocol such as `nbd:`.
    #[error("{path:?} has the backing file {name:?}: only file paths are supported")]
    BackingProtocol {
        /// The image.
        path: PathBuf,
        /// The backing file name in its header.
        name: String,
    },

    /// A backing file has an unsupported format, or no format is recorded and
    /// it looks like qcow2.
    #[error(
        "{path:?} records the format {format:?} for its backing file: it must be raw or qcow2 \
         (`qemu-img rebase -u -F FORMAT -b BACKING IMAGE` sets it)"
    )]
    BackingFormat {
        /// The image.
        path: PathBuf,
        /// The format in the header; empty if there is none.
        format: String,
    },

    /// A layer is its own backing file, directly or indirectly.
    #[error("{path:?} is its own backing file: `qemu-img rebase -u` sets another one")]
    Loop {
        /// The layer.
        path: PathBuf,
    },

    /// The image has too many layers.
    #[error("the image has more than {limit} layers: flatten it")]
    TooManyLayers {
        /// The maximum number of layers.
        limit: usize,
    },

    /// The image uses an unsupported feature.
    #[error(
        "{path:?} uses {feature}, which is not supported: `qemu-img convert -O qcow2` creates \
         an image without it"
    )]
    Unsupported {
        /// The image.
        path: PathBuf,
        /// The feature.
        feature: String,
    },

    /// The image has an unsupported format. Set the format to read a raw disk
    /// that only looks like one.
    #[error("{path:?} is {format}")]
    Foreign {
        /// The image.
        path: PathBuf,
        /// The format.
        format: ForeignFormat,
    },

    /// The image is larger than supported.
    #[error("{path:?} has {size} bytes, more than the {limit} that are supported")]
    TooLarge {
        /// The image.
        path: PathBuf,
        /// The size of the disk in bytes.
        size: u64,
        /// The maximum size in bytes.
        limit: u64,
    },

    /// The image is damaged.
    #[error("{path:?} is damaged: {damage}")]
    Damaged {
        /// The image.
        path: PathBuf,
        /// The damage.
        damage: ImageDamage,
    },

    /// The path of a new image already exists.
    #[error("{path:?} exists already: remove it or choose another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// The path of a base cannot be stored in a child's header.
    #[error("{path:?} cannot be a base: {reason}")]
    BaseName {
        /// The base.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },

    /// The image holds more data than allowed. The output is removed.
    #[error(
        "the image holds more than {limit} bytes of data: raise the limit if it can be trusted"
    )]
    Limit {
        /// The limit in bytes.
        limit: u64,
    },

    /// The caller cancelled the operation. The output is removed.
    #[error("cancelled")]
    Cancelled,
}

/// Damage in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageDamage {
    /// A field of the header is invalid.
    #[error("its header has an invalid {0}")]
    Header(&'static str),
    /// The offset of an L1 or L2 table is invalid.
    #[error("the table offset {offset} is invalid")]
    Table {
        /// The recorded offset.
        offset: u64,
    },
    /// The offset of a data cluster is invalid. The file may be truncated.
    #[error("the data of offset {at} is recorded at offset {offset} of the file, which is invalid")]
    Data {
        /// The offset on the disk.
        at: u64,
        /// The recorded offset.
        offset: u64,
    },
    /// Compressed data cannot be decompressed.
    #[error("the data of offset {at} cannot be decompressed")]
    Compressed {
        /// The offset on the disk.
        at: u64,
    },
    /// The image was not closed properly, or was marked as corrupt.
    #[error("it was not closed properly: `qemu-img check -r all` repairs it")]
    Unclean,
}

impl ImageError {
    /// Returns a function for `map_err` that makes a [`Self::Read`].
    pub(super) fn read<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        move |error| Self::Read {
            path: path.to_owned(),
            source: error.into(),
        }
    }

    /// Returns a function for `map_err` that makes a [`Self::Write`].
    pub(super) fn write<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        move |error| Self::Write {
            path: path.to_owned(),
            source: error.into(),
        }
    }

    /// Returns a function for `map_err` that unwraps the [`ImageError`] in an
    /// [`io::Error`], or makes a [`Self::Read`].
    pub(super) fn from_reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.downcast::<Self>() {
            Ok(error) => error,
            Err(source) => Self::Read {
                path: path.to_owned(),
                source,
            },
        }
    }
}

/// For damage found while reading.
impl From<ImageError> for io::Error {
    fn from(error: ImageError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
