//! The block map of ext2 and ext3: twelve direct blocks, then an indirect, a
//! double indirect and a triple indirect block.

use super::{
    Damage, Error, Ext4, Inode, Structure,
    fields::{Fields, to_usize},
    runs::{BlockRun, RunKind},
    store::Store,
};

/// Number of direct blocks in the inode.
const DIRECT: u64 = 12;

const POINTER: usize = size_of::<u32>();

/// Checks that a file may contain the direct blocks.
pub(super) fn check_root(ext4: &Ext4, inode: &Inode) -> Result<(), Damage> {
    let blocks = (0..to_usize(DIRECT)).map(|number| u64::from(pointer(&inode.map, number)));
    for block in blocks.filter(|block| *block != 0) {
        ext4.check_blocks(inode, block, 1)?;
    }
    Ok(())
}

/// Returns the run at a block of the file, within one indirect block, or `None`
/// beyond the last block that can be mapped.
pub(super) fn run(store: &Store, inode: &Inode, from: u64) -> Result<Option<BlockRun>, Error> {
    let per_table = u64::from(store.block_size() >> 2);
    if from < DIRECT {
        let direct = inode.map.get(..to_usize(DIRECT).saturating_mul(POINTER));
        return Ok(Some(within(direct.unwrap_or_default(), from)));
    }

    // The offset in the part that this level of indirection covers, and the
    // number of blocks in that part.
    let mut rest = from.saturating_sub(DIRECT);
    let mut span = per_table;
    let mut level: usize = 1;
    while rest >= span {
        if level == 3 {
            return Ok(None);
        }
        rest = rest.saturating_sub(span);
        span = span.saturating_mul(per_table);
        level = level.saturating_add(1);
    }

    let place = to_usize(DIRECT).saturating_add(level).saturating_sub(1);
    let mut block = pointer(&inode.map, place);
    loop {
        if block == 0 {
            return Ok(Some(BlockRun {
                length: span.saturating_sub(rest),
                place: RunKind::Hole,
            }));
        }
        let table = store.block(Structure::BlockMap, inode.number, block.into())?;
        span = span.checked_div(per_table).unwrap_or(0);
        let Some(index) = rest.checked_div(span).filter(|_| span > 1) else {
            return Ok(Some(within(&table, rest)));
        };
        block = pointer(&table, to_usize(index));
        rest = rest.checked_rem(span).unwrap_or(0);
    }
}

/// Returns the run from one place of a table on: blocks that are contiguous on
/// the disk, or a hole.
fn within(table: &[u8], place: u64) -> BlockRun {
    let place = to_usize(place);
    let count = table.len().checked_div(POINTER).unwrap_or(0);
    let first = u64::from(pointer(table, place));
    let mut length = 0_u64;
    for number in place..count {
        let expected = if first == 0 {
            0
        } else {
            first.saturating_add(length)
        };
        if u64::from(pointer(table, number)) != expected {
            break;
        }
        length = length.saturating_add(1);
    }
    BlockRun {
        length,
        place: if first == 0 {
            RunKind::Hole
        } else {
            RunKind::Data(first)
        },
    }
}

fn pointer(table: &[u8], number: usize) -> u32 {
    Fields(table).u32(number.saturating_mul(POINTER))
}
