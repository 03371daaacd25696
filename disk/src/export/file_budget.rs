use vmcell_tree::transfer::TreeLimits;

use crate::{
    DiskError, DiskLimit,
    budget::exceeded,
    ext4::{Inode, Run, RunPlace},
};

/// Counts the file contents of an export, as the receiver does, to leave out a
/// file that would exceed the limits instead of ending the export at it.
pub(super) struct FileBudget {
    limits: TreeLimits,
    holes: Holes,
    bytes: u64,
    length: u64,
}

/// What holes become at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holes {
    /// They stay holes.
    Kept,
    /// They are written as zeros.
    #[cfg(feature = "archive")]
    Filled,
}

/// The number of bytes of a file that are written, and its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSize {
    bytes: u64,
    length: u64,
}

impl FileSize {
    /// A file without holes.
    pub(super) fn whole(inode: &Inode) -> Self {
        Self {
            bytes: inode.size,
            length: inode.size,
        }
    }

    /// A file of which no run was counted yet.
    pub(super) fn sparse(inode: &Inode) -> Self {
        Self {
            bytes: 0,
            length: inode.size,
        }
    }

    pub(super) fn add(&mut self, run: &Run) {
        if !matches!(run.place, RunPlace::Hole | RunPlace::Unwritten(_)) {
            self.bytes = self.bytes.saturating_add(run.length);
        }
    }
}

impl FileBudget {
    pub(super) fn new(limits: TreeLimits, holes: Holes) -> Self {
        Self {
            limits,
            holes,
            bytes: 0,
            length: 0,
        }
    }

    /// Counts a file. One that exceeds a limit is not counted.
    pub(super) fn count(&mut self, size: FileSize, path: &[u8]) -> Result<(), DiskError> {
        let bytes = match self.holes {
            Holes::Kept => size.bytes,
            #[cfg(feature = "archive")]
            Holes::Filled => size.length,
        };
        let bytes = self.bytes.saturating_add(bytes);
        let length = self.length.saturating_add(size.length);
        for (sum, limit) in [(bytes, self.limits.bytes), (length, self.limits.length)] {
            if sum > limit {
                return Err(exceeded(DiskLimit::Bytes, limit, path));
            }
        }
        (self.bytes, self.length) = (bytes, length);
        Ok(())
    }
}
