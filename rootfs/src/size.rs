//! How large a file system is, and how it is divided.

use std::collections::HashMap;
use std::path::Path;

use crate::staging::Staging;
use crate::{Error, Fingerprint, Kind, Tree};

/// The size of a block. Fixed, since 4096 is the page size of every guest.
pub(crate) const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;
/// Below this, the journal and the fixed tables leave hardly any room.
const SMALLEST: u64 = 16 * MIB;
/// One inode for this many bytes: the ratio that distributions use.
const BYTES_PER_INODE: u64 = 16384;

/// The size of an image's file system. The file is sparse: what is free takes no space on the
/// host, so be generous.
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
    /// What the tree needs, and at least this many free bytes beyond. Holes in files count as
    /// if they were filled: for mostly empty giants choose [`Size::Exact`].
    Fit {
        /// Free bytes for the guest.
        headroom: u64,
    },
}

impl Default for Size {
    /// What the tree needs and 1 GiB.
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

    /// Divides a file system of this size that shall hold what is needed.
    pub(crate) fn layout(self, needs: &Needs) -> Result<Layout, Error> {
        let bytes = match self {
            Self::Exact(bytes) if bytes < SMALLEST => {
                return Err(Error::TooSmall {
                    size: bytes,
                    needed: needs.bytes(0),
                });
            }
            Self::Exact(bytes) => bytes / BLOCK * BLOCK,
            Self::Fit { headroom } => needs.bytes(headroom),
        };
        Ok(Layout {
            bytes,
            inodes: (bytes / BYTES_PER_INODE).max(needs.inodes()),
            // Every VM writes through its whole journal sooner or later, into a layer of its
            // own, so a journal is paid for once per VM. The least that ext4 takes is 4 MiB.
            journal_mib: if bytes < 256 * MIB { 4 } else { 8 },
        })
    }
}

/// How a file system is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) journal_mib: u64,
}

/// What a tree takes up in a file system. Counts from lengths only: the blocks that a file has
/// on the host depend on the host's file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    entries: u64,
    blocks: u64,
}

impl Needs {
    pub(crate) fn of(tree: &Tree, staging: &Staging) -> Self {
        let mut needs = Self::default();
        let mut directory_bytes: HashMap<&Path, u64> = HashMap::new();
        for (path, node) in tree.iter() {
            needs.entries += 1;
            let blocks = match &node.kind {
                Kind::File(_) => {
                    let data = staging.length(path).div_ceil(BLOCK);
                    // Blocks of the extent tree, if the file is much broken up.
                    data + data / 256
                }
                Kind::Symlink(_) | Kind::Directory => 1,
                Kind::HardLink(_)
                | Kind::Fifo
                | Kind::CharDevice { .. }
                | Kind::BlockDevice { .. } => 0,
            };
            needs.blocks += blocks + u64::from(!node.xattrs.is_empty());
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                *directory_bytes.entry(parent).or_default() += 12 + name.len() as u64;
            }
        }
        // An entry never spans two blocks, so up to a fifteenth of a block stays empty.
        needs.blocks += directory_bytes
            .values()
            .map(|bytes| bytes * 16 / 15 / BLOCK)
            .sum::<u64>();
        needs
    }

    fn inodes(&self) -> u64 {
        self.entries + self.entries / 4 + 1024
    }

    /// A size that is certainly enough: bitmaps, inode tables, backups of the superblock and
    /// the space reserved for growing take less than a sixteenth together.
    fn bytes(&self, headroom: u64) -> u64 {
        let content = self.blocks * BLOCK + self.inodes() * 256;
        let bytes = content.saturating_add(headroom).saturating_add(12 * MIB);
        bytes
            .saturating_add(bytes / 16)
            .div_ceil(MIB)
            .saturating_mul(MIB)
            .max(SMALLEST)
    }

    /// The smallest size that is promised to do.
    pub(crate) fn smallest(&self) -> u64 {
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
            let needs = Needs { entries, blocks };
            let layout = Size::Fit { headroom }.layout(&needs).unwrap();
            let tables = layout.inodes * 256 + layout.journal_mib * MIB;
            prop_assert_eq!(layout.bytes % BLOCK, 0);
            prop_assert!(layout.inodes > entries);
            prop_assert!(layout.bytes >= blocks * BLOCK + headroom + tables);
        }
    }

    #[test]
    fn a_size_that_cannot_hold_a_journal_is_refused_with_one_that_can() {
        let error = Size::Exact(MIB).layout(&Needs::default()).unwrap_err();
        let Error::TooSmall { size: MIB, needed } = error else {
            panic!("{error}")
        };
        assert!(Size::Exact(needed).layout(&Needs::default()).is_ok());
    }
}
