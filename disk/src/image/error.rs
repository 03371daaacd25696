use std::{
    io,
    path::{Path, PathBuf},
};

/// Why an image cannot be opened, read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The system refuses to open or read a file.
    #[error("cannot read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// The system refuses to make or change a file. What was begun is removed.
    #[error("cannot write {path:?}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// Only regular files are images.
    #[error("{path:?} is not a regular file: only files are images")]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },

    /// Somebody may be writing the image at this moment, or counts on nobody
    /// doing so.
    #[error(
        "{path:?} is in use: stop the VM that has it, or to read it ask for a look that may be torn"
    )]
    InUse {
        /// The image, or a layer beneath it.
        path: PathBuf,
    },

    /// The file system cannot tell whether the image is in use.
    #[error("cannot tell whether {path:?} is in use: ask for a look that may be torn")]
    Lock {
        /// The image, or a layer beneath it.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },

    /// A VM would write to a raw image. What a guest writes there could pass for
    /// another format later, so a VM has a qcow2 layer above it.
    #[error("{path:?} is a raw image: make a child of it for the VM to write to")]
    Raw {
        /// The image.
        path: PathBuf,
    },

    /// A VM would write to a layer that is sealed.
    #[error("{path:?} is sealed: make a child of it for the VM to write to")]
    Sealed {
        /// The layer.
        path: PathBuf,
    },

    /// A backing file is not where the caller allows backing files.
    #[error(
        "the backing file {path:?} is in no folder that is allowed: allow its folder if it may be read"
    )]
    Outside {
        /// Where it really is.
        path: PathBuf,
    },

    /// A backing file is named by something else than a path.
    #[error("{path:?} names its backing file {name:?}: only paths are followed")]
    Protocol {
        /// The image.
        path: PathBuf,
        /// The name in its header.
        name: String,
    },

    /// A backing file has a format that is not read, or none is named and it
    /// looks as if it were not raw.
    #[error(
        "{path:?} says of its backing file that its format is {format:?}: it must say raw or qcow2 \
         (`qemu-img rebase -u -F FORMAT -b BACKING IMAGE` writes it down)"
    )]
    BackingFormat {
        /// The image.
        path: PathBuf,
        /// The format that its header names; empty if it names none.
        format: String,
    },

    /// A layer is above itself.
    #[error("{path:?} is beneath itself: `qemu-img rebase -u` gives it another backing file")]
    Loop {
        /// The layer.
        path: PathBuf,
    },

    /// There are too many layers.
    #[error("the image has more than {limit} layers: flatten it")]
    TooDeep {
        /// How many there may be.
        limit: usize,
    },

    /// The image needs something that is not supported.
    #[error(
        "{path:?} needs {feature}, which is not supported: `qemu-img convert -O qcow2` makes an \
         image without it"
    )]
    Unsupported {
        /// The image.
        path: PathBuf,
        /// What it needs.
        feature: String,
    },

    /// The image claims a size that is not supported.
    #[error("{path:?} has {size} bytes, more than the {limit} that are supported")]
    TooLarge {
        /// The image.
        path: PathBuf,
        /// What it claims.
        size: u64,
        /// What is supported.
        limit: u64,
    },

    /// The image makes no sense.
    #[error("{path:?} is damaged: {damage}")]
    Damaged {
        /// The image.
        path: PathBuf,
        /// What is wrong.
        damage: ImageDamage,
    },

    /// A new image would have taken the place of a file.
    #[error("{path:?} exists already: remove it or choose another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// The name of a base cannot be written into a child's header.
    #[error("{path:?} cannot be a base: {reason}")]
    BaseName {
        /// The base.
        path: PathBuf,
        /// What is wrong with its name.
        reason: &'static str,
    },

    /// There is more data than was allowed. Nothing is left of what was
    /// written.
    #[error(
        "the image holds more than {limit} bytes of data: raise the limit if it can be trusted"
    )]
    Limit {
        /// What was allowed.
        limit: u64,
    },

    /// The caller wanted no more. Nothing is left of what was written.
    #[error("cancelled")]
    Cancelled,
}

/// What is wrong with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageDamage {
    /// The header makes no sense.
    #[error("its header has a bad {0}")]
    Header(&'static str),
    /// A table that translates places is not where one can be.
    #[error("a table is said to be at {offset}, where none can be")]
    Table {
        /// Where it is said to be.
        offset: u64,
    },
    /// The data of a place is not where data can be. The file may be cut off.
    #[error("what belongs at {at} is said to be at {offset} of the file, where nothing can be")]
    Data {
        /// The place in the disk.
        at: u64,
        /// Where it is said to be.
        offset: u64,
    },
    /// Compressed data cannot be unpacked.
    #[error("what belongs at {at} cannot be unpacked")]
    Packed {
        /// The place in the disk.
        at: u64,
    },
    /// It was not closed, or marked as broken by who had it.
    #[error("it was not closed properly: `qemu-img check -r all` repairs it")]
    Unclean,
}

impl ImageError {
    /// For `map_err`: the file cannot be read.
    pub(super) fn read<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        move |error| Self::Read {
            path: path.to_owned(),
            source: error.into(),
        }
    }

    /// For `map_err`: the file cannot be written.
    pub(super) fn write<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        move |error| Self::Write {
            path: path.to_owned(),
            source: error.into(),
        }
    }

    /// Reading an image that is open fails with an `io::Error`; what is behind
    /// it may be known better.
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

/// Damage that is found while reading.
impl From<ImageError> for io::Error {
    fn from(error: ImageError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
