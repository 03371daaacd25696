use std::fmt;

use super::{error::ImageError, foreign_format::ForeignFormat, source::Source};

/// The format of an image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The bytes of the disk, unmodified.
    Raw,
    /// QEMU's copy-on-write format, version 2 or 3.
    Qcow2,
}

impl Format {
    /// Returns QEMU's name of the format, which is also stored in qcow2
    /// headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }

    /// Returns the format with this QEMU name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "raw" | "file" => Some(Self::Raw),
            "qcow2" => Some(Self::Qcow2),
            _ => None,
        }
    }

    /// Detects the format from the first bytes, which a guest may have forged.
    ///
    /// # Errors
    ///
    /// [`ImageError::Foreign`]; [`ImageError::Read`].
    pub(super) fn detect(source: &Source) -> Result<Self, ImageError> {
        let mut magic = [0; 4];
        let read = source.read_padded(0, &mut magic);
        read.map_err(ImageError::read(&source.path))?;
        if magic == super::qcow2::MAGIC {
            return Ok(Self::Qcow2);
        }
        let foreign = ForeignFormat::detect(source);
        match foreign.map_err(ImageError::read(&source.path))? {
            Some(format) => Err(ImageError::Foreign {
                path: source.path.clone(),
                format,
            }),
            None => Ok(Self::Raw),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
