use std::io;

use super::chain_walk::ChainWalk;

/// Identifies a file independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device number of its file system.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

/// A range of a disk that is stored contiguously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange {
    /// The offset on the disk.
    pub offset: u64,
    /// The length in bytes, never 0.
    pub length: u64,
    /// Where it is stored.
    pub location: Location,
}

/// Where bytes of a disk are stored. Two disks hold the same bytes wherever
/// their locations are equal, as long as the file is not written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// Not stored: the bytes are zeros.
    Zero,
    /// Uncompressed in a file.
    File {
        /// The file.
        file: FileId,
        /// The offset in the file.
        offset: u64,
    },
    /// Compressed in a file.
    Compressed {
        /// The file.
        file: FileId,
        /// The offset of the compressed cluster in the file.
        offset: u64,
        /// The offset in the decompressed cluster.
        within: u64,
    },
}

/// The mapping of a disk, in order. Returned by
/// [`Image::mapped_ranges`](super::Image::mapped_ranges).
#[derive(Debug)]
pub struct MappedRanges<'a> {
    pub(super) walk: ChainWalk<'a>,
}

impl Iterator for MappedRanges<'_> {
    type Item = io::Result<MappedRange>;

    /// Returns the next range. An error is the last item.
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.walk.step().transpose()?;
        Some(step.map(|step| step.run()))
    }
}
