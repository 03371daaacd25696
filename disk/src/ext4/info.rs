use super::{
    Ext4, JournalState, Timestamp,
    fields::{Fields, join},
};

const CLEAN: u16 = 0x1;
const HAS_ERRORS: u16 = 0x2;

/// Magic number of the multiple mount protection (MMP) block, and its sequence
/// number while the file system is not mounted.
const MMP_MAGIC: u32 = 0x004d_4d50;
const MMP_CLEAN: u32 = 0xff4d_4d50;

/// The properties of a file system, from its superblock. All of it is
/// untrusted, and texts can contain any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The volume label, often empty.
    pub label: Vec<u8>,
    /// The UUID.
    pub uuid: [u8; 16],
    /// The names of its features, as in `dumpe2fs`.
    pub features: Vec<String>,
    /// The block size in bytes.
    pub block_size: u32,
    /// The number of blocks.
    pub blocks: u64,
    /// The number of free blocks. The kernel updates it only occasionally.
    pub free_blocks: u64,
    /// The number of blocks reserved for root.
    pub reserved_blocks: u64,
    /// The number of inodes.
    pub inodes: u32,
    /// The number of free inodes.
    pub free_inodes: u32,
    /// The size of an inode in bytes.
    pub inode_size: u16,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When it was last mounted.
    pub mounted: Option<Timestamp>,
    /// Where it was last mounted.
    pub mounted_at: Vec<u8>,
    /// When it was last written to.
    pub written: Option<Timestamp>,
    /// When it was last checked.
    pub checked: Option<Timestamp>,
    /// The number of mounts since then.
    pub mounts: u16,
    /// Whether it was unmounted cleanly. If not, it can still be intact.
    pub clean: bool,
    /// Whether it is mounted somewhere, according to the multiple mount
    /// protection (MMP). `None` without MMP.
    pub in_use: Option<bool>,
    /// The state of its journal.
    pub journal: JournalState,
    /// Whether the kernel has recorded errors.
    pub has_errors: bool,
    /// The number of recorded errors.
    pub error_count: u32,
    /// The first recorded error.
    pub first_error: Option<RecordedError>,
    /// The last recorded error.
    pub last_error: Option<RecordedError>,
}

impl Info {
    /// Returns the UUID in its usual notation.
    pub fn uuid_text(&self) -> String {
        let number = u128::from_be_bytes(self.uuid);
        let digits = format!("{number:032x}");
        let part = |range| digits.get(range).unwrap_or_default();
        [
            part(0..8),
            part(8..12),
            part(12..16),
            part(16..20),
            part(20..32),
        ]
        .join("-")
    }
}

/// An error that the kernel recorded in the superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedError {
    /// When it happened.
    pub time: Option<Timestamp>,
    /// The affected inode, or zero.
    pub inode: u32,
    /// The affected block, or zero.
    pub block: u64,
    /// The kernel function that reported it.
    pub function: Vec<u8>,
    /// The source line in the kernel.
    pub line: u32,
}

impl Ext4 {
    /// Returns the properties of the file system.
    pub fn info(&self) -> Info {
        let superblock = &self.superblock;
        let fields = superblock.fields();
        let count = |high, low| {
            let high = if superblock.features.sixty_four_bit() {
                fields.u32(high)
            } else {
                0
            };
            join(high, fields.u32(low))
        };
        let state = fields.u16(0x3a);
        // This feature is set while the file system is mounted, even if the
        // journal is empty. Backup superblocks do not have it, so the state of
        // the journal is used as well.
        let is_mounted = superblock.features.needs_recovery()
            || matches!(
                self.journal,
                JournalState::Replayed { .. } | JournalState::Ignored
            );
        let error_count = fields.u32(0x194);
        Info {
            label: fields.text(0x78, 16),
            uuid: fields.array(0x68),
            features: superblock.features.names(),
            block_size: superblock.block_size,
            blocks: superblock.blocks,
            free_blocks: count(0x158, 0xc),
            reserved_blocks: count(0x154, 0x8),
            inodes: superblock.inodes,
            free_inodes: fields.u32(0x10),
            inode_size: superblock.inode_size,
            created: superblock.time(0x108, 0x276),
            mounted: superblock.time(0x2c, 0x275),
            mounted_at: fields.text(0x88, 64),
            written: superblock.time(0x30, 0x274),
            checked: superblock.time(0x40, 0x277),
            mounts: fields.u16(0x34),
            clean: state & CLEAN != 0 && state & HAS_ERRORS == 0 && !is_mounted,
            in_use: self.in_use(),
            journal: self.journal.clone(),
            has_errors: state & HAS_ERRORS != 0,
            error_count,
            first_error: (error_count > 0).then(|| RecordedError {
                time: superblock.time(0x198, 0x278),
                inode: fields.u32(0x19c),
                block: fields.u64(0x1a0),
                function: fields.text(0x1a8, 32),
                line: fields.u32(0x1c8),
            }),
            last_error: (error_count > 0).then(|| RecordedError {
                time: superblock.time(0x1cc, 0x279),
                inode: fields.u32(0x1d0),
                block: fields.u64(0x1d8),
                function: fields.text(0x1e0, 32),
                line: fields.u32(0x1d4),
            }),
        }
    }

    fn in_use(&self) -> Option<bool> {
        if !self.superblock.features.multiple_mount_protection() {
            return None;
        }
        let offset = self.store.offset(self.superblock.mmp_block, 1)?;
        let bytes = self.store.bytes(offset, self.superblock.block_size).ok()?;
        let fields = Fields(&bytes);
        (fields.u32(0) == MMP_MAGIC).then(|| fields.u32(4) != MMP_CLEAN)
    }
}
