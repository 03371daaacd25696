use std::{fmt, io, os::unix::fs::FileExt as _};

use super::source::Source;

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
    pub(super) fn detect(source: &Source) -> io::Result<Self> {
        let mut magic = [0; 4];
        match source.file.read_exact_at(&mut magic, 0) {
            Ok(()) if magic == super::qcow2::MAGIC => Ok(Self::Qcow2),
            Ok(()) => Ok(Self::Raw),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Self::Raw),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
