use super::{
    Damage, DamageKind, Error, Ext4, Structure,
    checksum::{crc32c, crc32c_without},
    fields::{Fields, join},
    store::Bytes,
    superblock::{self, Superblock},
};

const CHECKSUM: usize = 0x1e;

/// A group descriptor whose checksum matches.
pub(super) struct Descriptor {
    bytes: Bytes,
    /// The block that contains it.
    pub(super) block: u64,
}

impl Descriptor {
    /// Returns a block number whose upper half is stored separately, if at all.
    pub(super) fn block_number(&self, low: usize, high: usize) -> u64 {
        let fields = Fields(&self.bytes);
        let high = match self.bytes.len() {
            64.. => fields.u32(high),
            _ => 0,
        };
        join(high, fields.u32(low))
    }
}

impl Ext4 {
    /// Returns the first block of the inode table of a group.
    pub(super) fn inode_table(&self, group: u32) -> Result<u64, Error> {
        let descriptor = self.descriptor(group)?;
        let table = descriptor.block_number(0x8, 0x28);
        if table == 0 || table >= self.superblock.blocks {
            let damage = Damage::new(Structure::Group, DamageKind::Block(table));
            return Err(damage.at(descriptor.block).into());
        }
        Ok(table)
    }

    pub(super) fn descriptor(&self, group: u32) -> Result<Descriptor, Error> {
        let damaged = |problem| Damage::new(Structure::Group, problem);
        let layout = &self.superblock;
        if group >= layout.groups {
            return Err(damaged(DamageKind::Size(group.into())).into());
        }
        let length = u32::from(layout.descriptor_size);
        let per_block = layout.block_size.checked_div(length).unwrap_or(1);
        let block = descriptor_block(layout, group, per_block)
            .ok_or_else(|| damaged(DamageKind::Size(group.into())))?;
        let place = group.checked_rem(per_block).unwrap_or(0);
        let offset = block
            .checked_mul(layout.block_size.into())
            .and_then(|start| start.checked_add(u64::from(place.checked_mul(length)?)))
            .ok_or_else(|| damaged(DamageKind::Block(block)))?;

        let bytes = self.store.bytes(offset, length)?;
        if let Some(seed) = layout.seed {
            let seed = crc32c(seed, &group.to_le_bytes());
            let sum = crc32c_without(seed, &bytes, CHECKSUM, size_of::<u16>());
            if sum & 0xffff != u32::from(Fields(&bytes).u16(CHECKSUM)) {
                return Err(damaged(DamageKind::Checksum).at(block).into());
            }
        }
        Ok(Descriptor { bytes, block })
    }
}

/// Returns the block with the descriptor of a group: after the superblock, or
/// in its meta block group.
fn descriptor_block(layout: &Superblock, group: u32, per_block: u32) -> Option<u64> {
    let number = group.checked_div(per_block)?;
    if !layout.features.meta_groups() || number < layout.first_meta_group {
        return layout
            .own_block()?
            .checked_add(number.into())?
            .checked_add(1);
    }
    let first = number.checked_mul(per_block)?;
    let start = first_block(layout, first)?;
    // With 1 KiB blocks and a first data block of 0, the superblock is in block
    // 1.
    let shifted = first == 0
        && u64::from(layout.block_size) == superblock::OFFSET
        && layout.first_data_block == 0;
    start
        .checked_add(u64::from(layout.has_copy(first)))?
        .checked_add(u64::from(shifted))
}

/// Returns the first block of a group.
pub(super) fn first_block(layout: &Superblock, group: u32) -> Option<u64> {
    u64::from(group)
        .checked_mul(layout.blocks_per_group.into())?
        .checked_add(layout.first_data_block.into())
}

impl Superblock {
    /// Returns the block that contains this copy of the superblock.
    fn own_block(&self) -> Option<u64> {
        if self.group == 0 {
            return superblock::OFFSET.checked_div(self.block_size.into());
        }
        first_block(self, self.group.into())
    }
}
