/// What is wrong with an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveProblem {
    /// It is no archive that we know.
    #[error("this is no tar archive, nor one compressed with gzip or zstd")]
    NotAnArchive,
    /// It ends too early.
    #[error("the archive ends too early: get a complete copy")]
    Truncated,
    /// Its checksums or compressed data do not fit.
    #[error("the archive is damaged: get another copy")]
    Damaged,
    /// A number in a header is out of bounds.
    #[error("a size or another number makes no sense")]
    BadNumber,
    /// A name begins with a slash.
    #[error("the name is absolute: make the archive with relative names")]
    AbsoluteName,
    /// A name holds `..`.
    #[error("the name holds \"..\": make the archive without")]
    ParentName,
    /// A name is empty, too long for Linux, or holds a zero byte.
    #[error("no entry can have such a name")]
    BadName,
    /// An entry is in something that the archive says is a file or link.
    #[error("it is inside of something that is no directory")]
    NotInDirectory,
    /// A name is first that of a directory and then of something else, or the
    /// other way round.
    #[error("the name was a directory before and is none now, or the other way round")]
    KindChanged,
    /// A hard link goes to what did not come before it, or out of the archive.
    #[error("the hard link goes to what is no file earlier in the archive")]
    BadLink,
    /// A symbolic link points to nothing, or to what cannot be.
    #[error("the symbolic link has no possible target")]
    BadTarget,
    /// The headers before the entry are too large or too many.
    #[error("what stands before the entry is too large")]
    TooMuchAhead,
    /// A sparse file in a form that is not known, or one of more than one part.
    #[error("such entries are not known: make the archive with `tar --format=posix`")]
    Unsupported,
}
