use super::OtherFormat;

/// What is wrong with an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveProblem {
    /// It is not an archive of a known format.
    #[error("not a tar archive, plain or compressed with gzip or zstd")]
    NotAnArchive,
    /// It is an archive, or compressed, but in another format.
    #[error(
        "it is {format}, and only tar archives can be read, plain or compressed with gzip or \
         zstd: convert it, for example with `{conversion}`",
        format = .0,
        conversion = .0.conversion()
    )]
    OtherFormat(OtherFormat),
    /// It is truncated.
    #[error("the archive is truncated: get a complete copy")]
    Truncated,
    /// A checksum, a record or the compressed data is invalid.
    #[error("the archive is damaged: get another copy")]
    Damaged,
    /// A number in a header is invalid.
    #[error("a size or another number is invalid")]
    BadNumber,
    /// A name contains `..`.
    #[error("the name contains \"..\": make the archive without it")]
    ParentName,
    /// A name is empty, too long for Linux, or contains a NUL byte.
    #[error("the name is invalid")]
    BadName,
    /// The parent of an entry is a file or a link in the archive.
    #[error("it is inside of something that is not a directory")]
    NotInDirectory,
    /// A name is first that of a directory and then of something else, or the
    /// reverse.
    #[error("the name was that of a directory before and is not now, or the reverse")]
    KindChanged,
    /// A hard link does not lead to an earlier file of the archive.
    #[error("the hard link does not lead to an earlier file of the archive")]
    BadHardLink,
    /// The target of a symbolic link is empty, too long, or contains a NUL
    /// byte.
    #[error("the target of the symbolic link is invalid")]
    BadSymlinkTarget,
    /// The headers before the entry are too large or too many.
    #[error("the headers before the entry are too large")]
    HeadersTooLarge,
    /// An entry of an unknown type, or a sparse file in an unknown format.
    #[error("entries of this kind are not supported: make the archive with `tar --format=posix`")]
    Unsupported,
}
