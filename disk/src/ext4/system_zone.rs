//! The blocks of the file system's own structures, which no file may contain.

use std::{ops::Range, time::Instant};

use super::{
    Damage, DamageKind, Ext4, Inode, Structure,
    groups::{Descriptor, first_block},
    superblock::Superblock,
};

/// Maximum number of groups that are checked when a file system is opened: 16
/// TiB with blocks of 4 KiB. The descriptors of larger ones are checked only
/// when they are used.
const MAX_GROUPS: u32 = 1 << 17;

/// The blocks of superblocks, group descriptors, bitmaps and inode tables.
#[derive(Debug, Default)]
pub(super) struct SystemZone {
    /// Sorted and disjoint.
    ranges: Vec<Range<u64>>,
}

impl SystemZone {
    fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|later, earlier| {
            let touches = later.start <= earlier.end;
            if touches {
                earlier.end = earlier.end.max(later.end);
            }
            touches
        });
        ranges.shrink_to_fit();
        Self { ranges }
    }

    /// Returns the first block of the zone among `count` blocks from `first` on.
    pub(super) fn overlap(&self, first: u64, count: u64) -> Option<u64> {
        let before = self.ranges.partition_point(|range| range.end <= first);
        let range = self.ranges.get(before)?;
        (range.start < first.saturating_add(count)).then(|| range.start.max(first))
    }
}

impl Ext4 {
    /// Checks that a file may contain these blocks. Returns the byte offset of
    /// the first one.
    pub(super) fn check_blocks(
        &self,
        inode: &Inode,
        first: u64,
        count: u64,
    ) -> Result<u64, Damage> {
        let damaged = |problem| Damage::new(Structure::BlockMap, problem).of(inode.number);
        if let Some(block) = self.zone.overlap(first, count) {
            return Err(damaged(DamageKind::Overlap(block)));
        }
        let offset = self.store.offset(first, count);
        offset.ok_or_else(|| damaged(DamageKind::Block(first)))
    }

    /// Reads all group descriptors. Returns the blocks of the file system's
    /// structures, and the first descriptor that makes the kernel refuse to
    /// mount (`ext4_check_descriptors`).
    pub(super) fn scan_groups(&self) -> (SystemZone, Option<Damage>) {
        let layout = &self.superblock;
        if layout.groups > MAX_GROUPS {
            return (SystemZone::default(), None);
        }
        let mut ranges = Vec::new();
        let mut damage = check_meta_groups(layout).err();
        let primary = base_blocks(layout, 0).unwrap_or_default();
        let since = Instant::now();
        for group in 0..layout.groups {
            if self.options.limits.is_late(since) {
                break;
            }
            ranges.extend(base_blocks(layout, group));
            // Other errors are reported when an inode of the group is read.
            let Ok(descriptor) = self.descriptor(group) else {
                continue;
            };
            for (first, count) in structures(layout, &descriptor) {
                let end = first.saturating_add(count);
                let Range { start, end: limit } = allowed(layout, group);
                let problem = if first < start || end > limit {
                    DamageKind::Block(first)
                } else if first < primary.end && end > primary.start {
                    DamageKind::Overlap(first)
                } else {
                    ranges.push(first..end);
                    continue;
                };
                let found = Damage::new(Structure::Group, problem).at(descriptor.block);
                damage.get_or_insert(found);
            }
        }
        (SystemZone::new(ranges), damage)
    }
}

/// Checks that the first meta block group exists.
fn check_meta_groups(layout: &Superblock) -> Result<(), Damage> {
    let first = layout.first_meta_group;
    let per_block = layout
        .block_size
        .checked_div(layout.descriptor_size.into())
        .unwrap_or(1);
    if !layout.features.meta_groups() || first <= layout.groups.div_ceil(per_block.max(1)) {
        return Ok(());
    }
    let problem = DamageKind::Size(first.into());
    Err(Damage::new(Structure::Superblock, problem))
}

/// Returns the first block and length of the bitmaps and the inode table of a
/// group.
fn structures(layout: &Superblock, descriptor: &Descriptor) -> [(u64, u64); 3] {
    let per_block = layout.block_size.checked_div(layout.inode_size.into());
    let table = layout
        .inodes_per_group
        .div_ceil(per_block.unwrap_or(1).max(1));
    [
        (descriptor.block_number(0x0, 0x20), 1),
        (descriptor.block_number(0x4, 0x24), 1),
        (descriptor.block_number(0x8, 0x28), table.into()),
    ]
}

/// Returns where the bitmaps and the inode table of a group may be.
fn allowed(layout: &Superblock, group: u32) -> Range<u64> {
    if layout.features.flexible_groups() {
        return u64::from(layout.first_data_block)..layout.blocks;
    }
    let start = first_block(layout, group).unwrap_or(u64::MAX);
    let end = start.saturating_add(layout.blocks_per_group.into());
    start..end.min(layout.blocks)
}

/// Returns the blocks of the superblock and the descriptors at the start of a
/// group.
fn base_blocks(layout: &Superblock, group: u32) -> Option<Range<u64>> {
    let per_block = layout
        .block_size
        .checked_div(layout.descriptor_size.into())?;
    let number = group.checked_div(per_block)?;
    let has_copy = layout.has_copy(group);
    let count = if layout.features.meta_groups() && number >= layout.first_meta_group {
        let place = group.checked_rem(per_block)?;
        let last = per_block.saturating_sub(1);
        let has_descriptors = place <= 1 || place == last;
        u64::from(has_copy).saturating_add(has_descriptors.into())
    } else if has_copy {
        let descriptors = match layout.features.meta_groups() {
            true => layout.first_meta_group,
            false => layout.groups.div_ceil(per_block),
        };
        let reserved = layout.fields().u16(0xce);
        1_u64
            .saturating_add(descriptors.into())
            .saturating_add(reserved.into())
    } else {
        0
    };
    let start = first_block(layout, group)?;
    (count > 0).then(|| start..start.saturating_add(count).min(layout.blocks))
}
