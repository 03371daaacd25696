use std::io;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The first block is not a header.
    #[error("not a tar archive")]
    NotAnArchive,
    /// The archive ends early.
    #[error("the archive is truncated")]
    Truncated,
    /// The checksum of a header is wrong.
    #[error("a header of the archive is damaged")]
    Damaged,
    /// A pax record has another form than `length key=value`.
    #[error("a pax record is malformed")]
    BadRecord,
    /// A number is malformed or out of range.
    #[error("a number in a header is malformed or out of range")]
    BadNumber,
    /// The headers before an entry are too large or too many, or the map of a
    /// sparse file is too long.
    #[error("the headers before an entry are too large")]
    HeadersTooLarge,
    /// A sparse file in an unknown format.
    #[error("sparse files of this format are not supported")]
    UnsupportedSparse,
    /// The reader of the archive failed.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Io(error),
        }
    }
}
