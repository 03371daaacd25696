//! The extent tree, which maps the blocks of a file to blocks of the disk.
//!
//! The tree is never walked as a whole. A search descends from the root to the
//! leaf for a block, and knows where that leaf ends; the next search starts
//! there. So the depth is bounded, each step makes progress, and a damaged leaf
//! does not hide the others.
//!
//! A node whose records are out of order or overlap is damaged as a whole, as in
//! the kernel: a binary search in it would find holes where there is data.

use super::{
    Damage, DamageKind, Error, Ext4, Inode, Structure,
    checksum::crc32c,
    fields::{Fields, join},
    runs::{BlockRun, RunKind},
    store::{Bytes, Store},
};

const MAGIC: u16 = 0xf30a;
const MAX_DEPTH: u16 = 5;

/// Maximum length of a written extent. Larger values mean an unwritten extent
/// that is shorter by this amount.
const MAX_WRITTEN: u16 = 32768;

/// Length of the header and of each record of a node.
const RECORD: usize = 12;

/// Number of blocks that a tree can map.
const MAX_BLOCKS: u64 = 1 << 32;

/// A leaf, and the end of the blocks that it covers.
#[derive(Debug)]
pub(super) struct Leaf {
    node: Node,
    end: u64,
}

impl Leaf {
    /// Returns the run at a block of the file, or `None` beyond the end of this
    /// leaf.
    pub(super) fn run(&self, inode: &Inode, from: u64) -> Result<Option<BlockRun>, Damage> {
        if from >= self.end {
            return Ok(None);
        }
        let after = self.node.after(from);
        let end = self
            .node
            .record(after)
            .map_or(self.end, |next| u64::from(next.u32(0)).min(self.end));
        let hole = |end: u64| BlockRun {
            length: end.saturating_sub(from),
            place: RunKind::Hole,
        };
        let Some(extent) = after.checked_sub(1).and_then(|last| self.node.record(last)) else {
            return Ok(Some(hole(end)));
        };
        let start = u64::from(extent.u32(0));
        let (length, written) = extent_length(extent);
        let skipped = from.saturating_sub(start);
        let Some(length) = length.checked_sub(skipped).filter(|left| *left > 0) else {
            return Ok(Some(hole(end)));
        };
        if from.saturating_add(length) > end {
            return Err(self.node.damaged(inode, DamageKind::Order));
        }
        let first = extent_start(extent).saturating_add(skipped);
        Ok(Some(BlockRun {
            length,
            place: if written {
                RunKind::Data(first)
            } else {
                RunKind::Unwritten(first)
            },
        }))
    }
}

/// Checks the root of a tree, and that a file may contain the blocks to which it
/// points.
pub(super) fn check_root(ext4: &Ext4, inode: &Inode) -> Result<(), Damage> {
    let root = Node::root(inode)?;
    for number in 0..root.entries {
        let record = root.record(number).unwrap_or(Fields(&[]));
        let (block, length) = match root.depth {
            0 => (extent_start(record), extent_length(record).0),
            _ => (child_block(record), 1),
        };
        ext4.check_blocks(inode, block, length)?;
    }
    Ok(())
}

/// Returns the leaf for a block of the file, or `None` beyond the last block
/// that a tree can map.
pub(super) fn leaf(store: &Store, inode: &Inode, from: u64) -> Result<Option<Leaf>, Error> {
    if from >= MAX_BLOCKS {
        return Ok(None);
    }
    let mut node = Node::root(inode)?;
    let mut end = MAX_BLOCKS;
    while node.depth > 0 {
        // A hole before the first block of the tree belongs to the first child.
        let chosen = node.after(from).saturating_sub(1);
        if let Some(next) = node.record(chosen.saturating_add(1)) {
            end = u64::from(next.u32(0)).min(end);
        }
        if end <= from {
            return Err(node.damaged(inode, DamageKind::Order).into());
        }
        let index = node.record(chosen).unwrap_or(Fields(&[]));
        let start = index.u32(0);
        node = Node::child(store, inode, child_block(index), node.depth)?;
        if node.record(0).is_some_and(|first| first.u32(0) != start) {
            return Err(node.damaged(inode, DamageKind::Order).into());
        }
    }
    Ok(Some(Leaf { node, end }))
}

#[derive(Debug)]
struct Node {
    bytes: NodeBytes,
    block: Option<u64>,
    entries: usize,
    depth: u16,
}

#[derive(Debug)]
enum NodeBytes {
    Root([u8; 60]),
    Block(Bytes),
}

impl Node {
    fn root(inode: &Inode) -> Result<Self, Damage> {
        let depth = Fields(&inode.map).u16(6);
        if depth > MAX_DEPTH {
            return Err(damage(inode, None, DamageKind::Depth(depth)));
        }
        Self::check(inode, NodeBytes::Root(inode.map), None, depth)
    }

    fn child(store: &Store, inode: &Inode, block: u64, depth: u16) -> Result<Self, Error> {
        let bytes = store.block(Structure::BlockMap, inode.number, block)?;
        let node = Self::check(
            inode,
            NodeBytes::Block(bytes),
            Some(block),
            depth.saturating_sub(1),
        )?;
        let fields = Fields(node.bytes());
        let tail = RECORD
            .saturating_mul(fields.u16(4).into())
            .saturating_add(RECORD);
        let sum = |seed| crc32c(seed, fields.bytes(0, tail).unwrap_or_default());
        if inode.seed.is_some_and(|seed| sum(seed) != fields.u32(tail)) {
            return Err(node.damaged(inode, DamageKind::Checksum).into());
        }
        Ok(node)
    }

    fn check(
        inode: &Inode,
        bytes: NodeBytes,
        block: Option<u64>,
        depth: u16,
    ) -> Result<Self, Damage> {
        let node = Self {
            bytes,
            block,
            entries: 0,
            depth,
        };
        let fields = Fields(node.bytes());
        if fields.u16(0) != MAGIC {
            return Err(node.damaged(inode, DamageKind::Magic));
        }
        if fields.u16(6) != depth {
            return Err(node.damaged(inode, DamageKind::Depth(fields.u16(6))));
        }
        let entries = fields.u16(2);
        let room = node.bytes().len().checked_div(RECORD).unwrap_or(0);
        let fits = entries <= fields.u16(4) && usize::from(fields.u16(4)) < room;
        if !fits || (depth > 0 && entries == 0) {
            return Err(node.damaged(inode, DamageKind::Size(entries.into())));
        }
        let node = Self {
            entries: entries.into(),
            ..node
        };
        node.check_order(inode)?;
        Ok(node)
    }

    /// Checks that each record starts behind the one before it.
    fn check_order(&self, inode: &Inode) -> Result<(), Damage> {
        let mut end = 0;
        for number in 0..self.entries {
            let record = self.record(number).unwrap_or(Fields(&[]));
            let start = u64::from(record.u32(0));
            let length = match self.depth {
                0 => extent_length(record).0,
                _ => 1,
            };
            if length == 0 {
                return Err(self.damaged(inode, DamageKind::Size(0)));
            }
            if start < end {
                return Err(self.damaged(inode, DamageKind::Order));
            }
            end = start.saturating_add(length);
        }
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            NodeBytes::Root(map) => map,
            NodeBytes::Block(bytes) => bytes,
        }
    }

    fn record(&self, number: usize) -> Option<Fields<'_>> {
        let at = number.checked_add(1)?.checked_mul(RECORD)?;
        let bytes = Fields(self.bytes()).bytes(at, RECORD)?;
        (number < self.entries).then_some(Fields(bytes))
    }

    /// Returns the number of records that start at or before a block of the
    /// file.
    fn after(&self, from: u64) -> usize {
        let (mut low, mut high) = (0_usize, self.entries);
        while low < high {
            let middle = low.midpoint(high);
            let start = self.record(middle).map_or(0, |record| record.u32(0));
            if u64::from(start) <= from {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    fn damaged(&self, inode: &Inode, problem: DamageKind) -> Damage {
        damage(inode, self.block, problem)
    }
}

/// Returns the first block of an extent on the disk.
fn extent_start(extent: Fields<'_>) -> u64 {
    join(extent.u16(6).into(), extent.u32(8))
}

/// Returns the block to which a record of an inner node points.
fn child_block(index: Fields<'_>) -> u64 {
    join(index.u16(8).into(), index.u32(4))
}

/// Returns the number of blocks of an extent, and whether they are written.
fn extent_length(extent: Fields<'_>) -> (u64, bool) {
    match extent.u16(4) {
        length if length <= MAX_WRITTEN => (length.into(), true),
        length => (length.saturating_sub(MAX_WRITTEN).into(), false),
    }
}

fn damage(inode: &Inode, block: Option<u64>, problem: DamageKind) -> Damage {
    Damage {
        structure: Structure::BlockMap,
        inode: Some(inode.number),
        block,
        problem,
    }
}
