//! The size and layout of a file system.

use std::collections::HashMap;
use std::path::Path;

use crate::{Error, Fingerprint, Kind, Tree};

/// The block size. Fixed, because every guest has pages of 4096 bytes.
pub(crate) const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;
/// The minimum size. Below it, the journal and the fixed tables leave hardly any room.
const MIN_SIZE: u64 = 16 * MIB;
/// Bytes per inode: the ratio that distributions use.
const BYTES_PER_INODE: u64 = 16384;

/// The size of an image's file system. The file is sparse: free space in it takes no space on the
/// host.
///
/// ```
/// use vmcell_rootfs::{ImageBuilder, Size};
///
/// let roomy = ImageBuilder::new().size(Size::Exact(8 << 30));
/// let snug = ImageBuilder::new().size(Size::Fit { headroom: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// This many bytes, rounded down to a multiple of 4096. At least 16 MiB.
    Exact(u64),
    /// The space that the tree needs, and at least this many free bytes. Holes in files count as
    /// if they were filled: for large sparse files use [`Size::Exact`].
    Fit {
        /// Free bytes for the guest.
        headroom: u64,
    },
}

impl Default for Size {
    /// The space that the tree needs and 1 GiB.
    fn default() -> Self {
        Self::Fit { headroom: 1 << 30 }
    }
}

impl Size {
    pub(crate) fn fingerprint(self, inputs: &mut Fingerprint) {
        let (kind, bytes) = match self {
            Self::Exact(bytes) => ("exact", bytes),
            Self::Fit { headroom } => ("fit", headroom),
        };
        inputs
            .field("size", kind)
            .field("bytes", bytes.to_le_bytes());
    }

    /// Returns the layout of a file system of this size for a tree with this estimate.
    pub(crate) fn layout(self, estimate: &SpaceEstimate) -> Result<Layout, Error> {
        let bytes = match self {
            Self::Exact(bytes) if bytes < MIN_SIZE => {
                return Err(Error::TooSmall {
                    size: bytes,
                    needed: estimate.bytes(0),
                });
            }
            Self::Exact(bytes) => bytes / BLOCK * BLOCK,
            Self::Fit { headroom } => estimate.bytes(headroom),
        };
        Ok(Layout {
            bytes,
            inodes: (bytes / BYTES_PER_INODE).max(estimate.inodes()),
            // Every VM eventually writes its whole journal to its own overlay, so the journal
            // takes space once per VM. The minimum of ext4 is 4 MiB.
            journal_mib: if bytes < 256 * MIB { 4 } else { 8 },
        })
    }
}

/// The parameters of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) journal_mib: u64,
}

/// The space that a tree takes in a file system. Computed from lengths only: the blocks that a
/// file has on the host depend on the host's file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceEstimate {
    entries: u64,
    blocks: u64,
}

impl SpaceEstimate {
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut estimate = Self::default();
        let mut directory_bytes: HashMap<&Path, u64> = HashMap::new();
        for (path, node) in tree.iter() {
            estimate.entries += 1;
            let blocks = match &node.kind {
                Kind::File(content) => {
                    let data = content.length().div_ceil(BLOCK);
                    // Blocks of the extent tree, if the file is fragmented.
                    data + data / 256
                }
                Kind::Symlink(_) | Kind::Directory => 1,
                Kind::HardLink(_)
                | Kind::Fifo
                | Kind::CharDevice { .. }
                | Kind::BlockDevice { .. } => 0,
            };
            estimate.blocks += blocks + u64::from(!node.xattrs.is_empty());
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                *directory_bytes.entry(parent).or_default() += 12 + name.len() as u64;
            }
        }
        // An entry never spans two blocks, so up to a fifteenth of a block stays empty.
        estimate.blocks += directory_bytes
            .values()
            .map(|bytes| bytes * 16 / 15 / BLOCK)
            .sum::<u64>();
        estimate
    }

    fn inodes(&self) -> u64 {
        self.entries + self.entries / 4 + 1024
    }

    /// Returns a sufficient size: bitmaps, inode tables, backups of the superblock and the space
    /// reserved for growing take less than a sixteenth together.
    fn bytes(&self, headroom: u64) -> u64 {
        let content = self.blocks * BLOCK + self.inodes() * 256;
        let bytes = content.saturating_add(headroom).saturating_add(12 * MIB);
        bytes
            .saturating_add(bytes / 16)
            .div_ceil(MIB)
            .saturating_mul(MIB)
            .max(MIN_SIZE)
    }

    /// Returns a sufficient size without free space.
    pub(crate) fn min_bytes(&self) -> u64 {
        self.bytes(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_fitting_layout_has_room_for_the_tree_and_the_headroom(
            entries in 1u64..10_000_000,
            blocks in 1u64..1 << 30,
            headroom in 0u64..1 << 44,
        ) {
            let estimate = SpaceEstimate { entries, blocks };
            let layout = Size::Fit { headroom }.layout(&estimate).unwrap();
            let tables = layout.inodes * 256 + layout.journal_mib * MIB;
            prop_assert_eq!(layout.bytes % BLOCK, 0);
            prop_assert!(layout.inodes > entries);
            prop_assert!(layout.bytes >= blocks * BLOCK + headroom + tables);
        }
    }

    #[test]
    fn a_size_that_cannot_hold_a_journal_is_refused_with_one_that_can() {
        let error = Size::Exact(MIB)
            .layout(&SpaceEstimate::default())
            .unwrap_err();
        let Error::TooSmall { size: MIB, needed } = error else {
            panic!("{error}")
        };
        assert!(
            Size::Exact(needed)
                .layout(&SpaceEstimate::default())
                .is_ok()
        );
    }
}
