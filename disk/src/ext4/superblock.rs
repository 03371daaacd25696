use super::{
    Checksums, Damage, DamageKind, Error, Structure, Timestamp,
    checksum::{START, crc32c, crc32c_without},
    features::Features,
    fields::{Fields, join},
};

/// Size of a superblock in bytes.
pub(super) const LENGTH: usize = 1024;

/// Offset of the primary superblock, whatever the block size.
pub(super) const OFFSET: u64 = 1024;

const MAGIC: u16 = 0xef53;
const CHECKSUM: usize = 0x3fc;

/// The parsed superblock. All values are checked; no divisor is zero.
#[derive(Clone, Debug)]
pub(super) struct Superblock {
    pub(super) features: Features,
    pub(super) block_size: u32,
    pub(super) blocks: u64,
    pub(super) inodes: u32,
    pub(super) first_data_block: u32,
    pub(super) blocks_per_group: u32,
    pub(super) inodes_per_group: u32,
    pub(super) groups: u32,
    pub(super) first_inode: u32,
    pub(super) inode_size: u16,
    pub(super) descriptor_size: u16,
    pub(super) first_meta_group: u32,
    pub(super) backup_groups: [u32; 2],
    pub(super) journal_inode: u32,
    pub(super) mmp_block: u64,
    pub(super) group: u16,
    /// The initial value of metadata checksums. `None` if there are no
    /// checksums or they are ignored.
    pub(super) seed: Option<u32>,
    /// The raw bytes, for [`super::Info`].
    pub(super) bytes: Box<[u8; LENGTH]>,
}

impl Superblock {
    pub(super) fn parse(bytes: Box<[u8; LENGTH]>, checksums: Checksums) -> Result<Self, Error> {
        let fields = Fields(&*bytes);
        if fields.u16(0x38) != MAGIC {
            return Err(Error::NoExtFileSystem);
        }
        // Revision 0 has fixed sizes. It should have no features, but if any
        // are set, the kernel respects them.
        let revision = fields.u32(0x4c);
        let features = Features {
            compatible: fields.u32(0x5c),
            incompatible: fields.u32(0x60),
            read_only: fields.u32(0x64),
        };
        if features.checksums() && checksums == Checksums::Check {
            if fields.u8(0x175) != 1 {
                return Err(Error::Unsupported {
                    feature: format!("checksums of kind {}", fields.u8(0x175)),
                });
            }
            if crc32c(START, fields.bytes(0, CHECKSUM).unwrap_or_default()) != fields.u32(CHECKSUM)
            {
                return Err(damaged(DamageKind::Checksum));
            }
        }
        features.check()?;

        let block_size = match fields.u32(0x18) {
            power @ 0..=6 => 1024_u32 << power,
            power => return Err(damaged(DamageKind::Size(power.into()))),
        };
        let high = |at| {
            if features.sixty_four_bit() {
                fields.u32(at)
            } else {
                0
            }
        };
        let blocks = join(high(0x150), fields.u32(0x4));
        let first_data_block = fields.u32(0x14);
        let blocks_per_group = fields.u32(0x20);
        let inodes_per_group = fields.u32(0x28);
        let inode_size = if revision == 0 { 128 } else { fields.u16(0x58) };
        let descriptor_size = if features.sixty_four_bit() {
            fields.u16(0xfe)
        } else {
            32
        };

        let sized = |size: u16, least: u16| {
            size.is_power_of_two() && size >= least && u32::from(size) <= block_size
        };
        if !sized(inode_size, 128) {
            return Err(damaged(DamageKind::Size(inode_size.into())));
        }
        if !sized(descriptor_size, 32) {
            return Err(damaged(DamageKind::Size(descriptor_size.into())));
        }
        if inodes_per_group == 0 {
            return Err(damaged(DamageKind::Size(0)));
        }
        let groups = blocks
            .checked_sub(first_data_block.into())
            .filter(|blocks| *blocks > 0)
            .and_then(|blocks| {
                let whole = blocks
                    .checked_sub(1)?
                    .checked_div(blocks_per_group.into())?;
                u32::try_from(whole.checked_add(1)?).ok()
            })
            .ok_or_else(|| damaged(DamageKind::Size(blocks)))?;

        let seed = (features.checksums() && checksums == Checksums::Check).then(|| {
            if features.checksum_seed() {
                fields.u32(0x270)
            } else {
                crc32c(START, fields.bytes(0x68, 16).unwrap_or_default())
            }
        });
        Ok(Self {
            features,
            block_size,
            blocks,
            inodes: fields.u32(0x0),
            first_data_block,
            blocks_per_group,
            inodes_per_group,
            groups,
            first_inode: if revision == 0 { 11 } else { fields.u32(0x54) },
            inode_size,
            descriptor_size,
            first_meta_group: fields.u32(0x104),
            backup_groups: [fields.u32(0x24c), fields.u32(0x250)],
            journal_inode: fields.u32(0xe0),
            mmp_block: fields.u64(0x168),
            group: fields.u16(0x5a),
            seed,
            bytes,
        })
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields(&*self.bytes)
    }

    /// Returns a time whose upper eight bits are stored separately, or `None`
    /// if it is zero.
    pub(super) fn time(&self, low: usize, high: usize) -> Option<Timestamp> {
        let fields = self.fields();
        let seconds = join(fields.u8(high).into(), fields.u32(low));
        Some(Timestamp {
            seconds: i64::try_from(seconds)
                .ok()
                .filter(|seconds| *seconds != 0)?,
            nanoseconds: 0,
        })
    }

    /// Returns whether the checksum of a structure matches, for structures
    /// whose checksum starts with the file system's seed.
    pub(super) fn matches(&self, before: &[u8], bytes: &[u8], at: usize, sum: u32) -> bool {
        self.seed.is_none_or(|seed| {
            crc32c_without(crc32c(seed, before), bytes, at, size_of::<u32>()) == sum
        })
    }

    /// Returns the initial value of the checksums of an inode and its blocks.
    pub(super) fn inode_seed(&self, number: u32, generation: u32) -> Option<u32> {
        self.seed.map(|seed| {
            let sum = crc32c(seed, &number.to_le_bytes());
            crc32c(sum, &generation.to_le_bytes())
        })
    }

    /// Returns whether a group has a copy of the superblock.
    pub(super) fn has_copy(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if self.features.sparse_super2() {
            return self.backup_groups.contains(&group);
        }
        group == 1
            || !self.features.sparse_super()
            || [3, 5, 7].into_iter().any(|base| is_power(group, base))
    }
}

fn is_power(mut number: u32, base: u32) -> bool {
    while number.checked_rem(base) == Some(0) && number > 0 {
        number = number.checked_div(base).unwrap_or(0);
    }
    number == 1
}

fn damaged(problem: DamageKind) -> Error {
    Damage::new(Structure::Superblock, problem).into()
}
