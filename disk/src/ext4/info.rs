use super::{
    Ext4, JournalState, Timestamp,
    fields::{Fields, join},
};

const CLEAN: u16 = 0x1;
const HAS_ERRORS: u16 = 0x2;

/// The mark of a block that protects against two mounts, and its state when
/// nobody has the file system mounted.
const MMP_MAGIC: u32 = 0x004d_4d50;
const MMP_CLEAN: u32 = 0xff4d_4d50;

/// What a file system says about itself. All of it is the image's word: a text
/// may have any bytes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Its label, often empty.
    pub label: Vec<u8>,
    /// Its UUID.
    pub uuid: [u8; 16],
    /// What it uses, as `dumpe2fs` calls it.
    pub features: Vec<String>,
    /// How many bytes a block has.
    pub block_size: u32,
    /// How many blocks it has.
    pub blocks: u64,
    /// How many of them are free. The kernel writes that down now and then.
    pub free_blocks: u64,
    /// How many of those are kept for root.
    pub reserved_blocks: u64,
    /// How many inodes it has.
    pub inodes: u32,
    /// How many of them are free.
    pub free_inodes: u32,
    /// How many bytes an inode has.
    pub inode_size: u16,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it was mounted last.
    pub mounted: Option<Timestamp>,
    /// Where it was mounted last.
    pub mounted_at: Vec<u8>,
    /// When it was written last.
    pub written: Option<Timestamp>,
    /// When it was checked last.
    pub checked: Option<Timestamp>,
    /// How often it was mounted since then.
    pub mounts: u16,
    /// Whether it was unmounted as it should be. It can be sound even so.
    pub clean: bool,
    /// Whether some program has it mounted, as far as the protection against
    /// two mounts tells. None without such protection.
    pub in_use: Option<bool>,
    /// How its journal was found.
    pub journal: JournalState,
    /// Whether the kernel has found errors in it.
    pub has_errors: bool,
    /// How many errors it has written down.
    pub error_count: u32,
    /// The first of them.
    pub first_error: Option<RecordedError>,
    /// The last of them.
    pub last_error: Option<RecordedError>,
}

/// An error that the kernel wrote down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedError {
    /// When it happened.
    pub time: Option<Timestamp>,
    /// The inode it was about, if not zero.
    pub inode: u32,
    /// The block it was about, if not zero.
    pub block: u64,
    /// The function of the kernel that noticed it.
    pub function: Vec<u8>,
    /// The line of that function's file.
    pub line: u32,
}

impl Ext4 {
    /// What the file system says about itself.
    pub fn info(&self) -> Info {
        let superblock = &self.superblock;
        let fields = superblock.fields();
        let wide = |high, low| {
            let high = if superblock.features.sixty_four_bit() {
                fields.u32(high)
            } else {
                0
            };
            join(high, fields.u32(low))
        };
        let state = fields.u16(0x3a);
        // Set from the mount to the unmount, also while the journal is empty. Copies
        // of the superblock do not have it: there the journal tells.
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
            free_blocks: wide(0x158, 0xc),
            reserved_blocks: wide(0x154, 0x8),
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
