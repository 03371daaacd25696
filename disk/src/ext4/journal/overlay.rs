use std::collections::BTreeMap;

use super::{
    super::fields::{to_u64, to_usize},
    MAGIC,
};

/// The newest copy of a block in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct BlockCopy {
    /// Its byte offset in the image.
    pub(super) offset: u64,
    /// The block starts with the journal's magic number, which the copy in the
    /// journal replaces by zeros.
    pub(super) escaped: bool,
}

/// The blocks that are newer in the journal than in the file system.
#[derive(Debug, Default)]
pub(in super::super) struct Overlay {
    /// Sorted by block number.
    copies: Vec<(u64, BlockCopy)>,
}

impl Overlay {
    pub(super) fn new(copies: BTreeMap<u64, BlockCopy>) -> Self {
        Self {
            copies: copies.into_iter().collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.copies.len()
    }

    /// Returns the block numbers, in order.
    pub(in super::super) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.copies.iter().map(|(block, _)| *block)
    }

    /// Returns whether any block from `first` up to but not including `end` has
    /// a newer copy.
    pub(in super::super) fn covers(&self, first: u64, end: u64) -> bool {
        let from = self.copies.partition_point(|(block, _)| *block < first);
        self.copies.get(from).is_some_and(|(block, _)| *block < end)
    }

    /// Replaces the outdated bytes of a buffer that was read from `offset`.
    pub(in super::super) fn apply<E>(
        &self,
        block_size: u32,
        offset: u64,
        buffer: &mut [u8],
        read: impl Fn(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let block_size = u64::from(block_size);
        let first = offset.checked_div(block_size).unwrap_or(0);
        let end = offset.saturating_add(to_u64(buffer.len()));
        let from = self.copies.partition_point(|(block, _)| *block < first);
        for (block, copy) in self.copies.iter().skip(from) {
            let start = block.saturating_mul(block_size);
            if start >= end {
                break;
            }
            let low = start.max(offset);
            let high = start.saturating_add(block_size).min(end);
            let range = to_usize(low.saturating_sub(offset))..to_usize(high.saturating_sub(offset));
            let part = buffer.get_mut(range).unwrap_or_default();
            let skipped = low.saturating_sub(start);
            read(copy.offset.saturating_add(skipped), part)?;
            if copy.escaped {
                let magic = MAGIC.to_be_bytes();
                let rest = magic.iter().skip(to_usize(skipped));
                part.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(())
    }
}
