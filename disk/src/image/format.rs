use std::{fmt, io, os::unix::fs::FileExt as _};

use super::source::Source;

/// How an image is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The bytes of the disk as they are.
    Raw,
    /// QEMU's copy-on-write format, version 2 or 3.
    Qcow2,
}

impl Format {
    /// The name that QEMU gives it, which is also what a qcow2 header holds.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "raw" | "file" => Some(Self::Raw),
            "qcow2" => Some(Self::Qcow2),
            _ => None,
        }
    }

    /// What the first bytes say, which may be a guest's lie.
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
