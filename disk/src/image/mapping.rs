use std::io;

use super::walk::WalkOptions;

/// A file, however it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device that its file system is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

/// Bytes of a disk that are stored in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange {
    /// Where in the disk it begins.
    pub offset: u64,
    /// How long it is. Never 0.
    pub length: u64,
    /// Where its bytes really are.
    pub place: Location,
}

/// Where bytes of a disk really are. Two disks hold the same bytes wherever
/// their places are equal, as long as nobody writes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// Nowhere: they are zeroes.
    Zero,
    /// In a file, as they are.
    File {
        /// The file.
        file: FileId,
        /// Where in the file.
        offset: u64,
    },
    /// In a file, compressed.
    Packed {
        /// The file.
        file: FileId,
        /// Where in the file the compressed piece begins.
        offset: u64,
        /// How far into the unpacked piece.
        within: u64,
    },
}

/// The runs of a disk, in order. Made by [`Image::runs`](super::Image::runs).
#[derive(Debug)]
pub struct MappedRanges<'a> {
    pub(super) walk: WalkOptions<'a>,
}

impl Iterator for MappedRanges<'_> {
    type Item = io::Result<MappedRange>;

    /// The next run. An error is the last item.
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.walk.step().transpose()?;
        Some(step.map(|step| step.run()))
    }
}
