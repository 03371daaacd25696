use std::{
    ops::{Deref, Range},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Damage, DamageKind, Error, Structure,
    cache::Cache,
    fields::{narrow, wide},
    journal::Overlay,
    superblock::Superblock,
};
use crate::ReadAt;

/// How much metadata is read at a time: inodes and descriptors that are next to
/// each other are mostly wanted together.
const PIECE: u32 = 16 << 10;

/// The bytes of a file system, as they are after the journal.
pub(super) struct Store {
    blocks: Box<dyn ReadAt>,
    size: u64,
    block_size: u32,
    /// How many blocks the file system has.
    count: u64,
    piece: u32,
    overlay: Overlay,
    cache: Mutex<Cache>,
}

impl Store {
    /// At most `kept` bytes stay in memory.
    pub(super) fn new(blocks: Box<dyn ReadAt>, superblock: &Superblock, kept: usize) -> Self {
        let block_size = superblock.block_size;
        let piece = PIECE.max(block_size);
        let most = wide(kept).checked_div(piece.into()).unwrap_or(0);
        Self {
            size: blocks.size(),
            blocks,
            block_size,
            count: superblock.blocks,
            piece,
            overlay: Overlay::default(),
            cache: Mutex::new(Cache::new(narrow(most))),
        }
    }

    /// From now on, the file system has so many blocks.
    pub(super) fn resize(&mut self, count: u64) {
        self.count = count;
    }

    /// Whether the image has all of a block, whatever the file system says.
    pub(super) fn has_block(&self, number: u64) -> bool {
        let end = number
            .checked_add(1)
            .and_then(|next| next.checked_mul(self.block_size.into()));
        end.is_some_and(|end| end <= self.size)
    }

    /// From now on, some blocks are those of the journal.
    pub(super) fn lay_over(&mut self, overlay: Overlay) {
        self.overlay = overlay;
        let cache = self.cache.get_mut();
        cache.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Which bytes are those of the journal.
    pub(super) fn replayed(&self) -> impl Iterator<Item = Range<u64>> {
        let block_size = u64::from(self.block_size);
        self.overlay.blocks().map(move |block| {
            let start = block.saturating_mul(block_size);
            start..start.saturating_add(block_size)
        })
    }

    pub(super) fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Fills the buffer from the bytes at `offset`.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let end = offset.checked_add(wide(buffer.len()));
        if end.is_none_or(|end| end > self.size) {
            return Err(Error::Read {
                offset,
                source: std::io::ErrorKind::UnexpectedEof.into(),
            });
        }
        self.read_raw(offset, buffer)?;
        self.overlay
            .apply(self.block_size, offset, buffer, |offset, buffer| {
                self.read_raw(offset, buffer)
            })
    }

    /// Whether some of those bytes are newer in the journal than in their place.
    pub(super) fn is_in_journal(&self, offset: u64, length: u64) -> bool {
        let block_size = u64::from(self.block_size).max(1);
        let end = offset.saturating_add(length).div_ceil(block_size);
        let first = offset.checked_div(block_size).unwrap_or(0);
        self.overlay.covers(first, end)
    }

    /// Metadata: one block, out of the cache if it is there. It is a part of
    /// the structure, and of the inode.
    pub(super) fn block(
        &self,
        structure: Structure,
        inode: u32,
        number: u64,
    ) -> Result<Bytes, Error> {
        let offset = self
            .offset(number, 1)
            .ok_or_else(|| Damage::new(structure, DamageKind::Block(number)).of(inode))?;
        self.bytes(offset, self.block_size)
    }

    /// Where some blocks start. None if the file system does not have them all.
    pub(super) fn offset(&self, number: u64, length: u64) -> Option<u64> {
        let end = number.checked_add(length)?;
        if number == 0 || end > self.count {
            return None;
        }
        number.checked_mul(self.block_size.into())
    }

    /// Metadata: some bytes that do not cross the end of a block.
    pub(super) fn bytes(&self, offset: u64, length: u32) -> Result<Bytes, Error> {
        let piece = u64::from(self.piece);
        let number = offset.checked_div(piece).unwrap_or(0);
        let start = narrow(offset.checked_rem(piece).unwrap_or(0));
        let length = narrow(length.into());
        let range = start..start.saturating_add(length);

        match self.piece(number) {
            Ok(bytes) if range.end <= bytes.len() => Ok(Bytes { bytes, range }),
            // The image ends here, or a part of the piece cannot be read. That
            // must not hide the rest.
            _ => {
                let mut bytes = vec![0; length];
                self.read(offset, &mut bytes)?;
                Ok(Bytes {
                    bytes: Arc::new(bytes),
                    range: 0..length,
                })
            }
        }
    }

    fn piece(&self, number: u64) -> Result<Arc<Vec<u8>>, Error> {
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = cache().get(number) {
            return Ok(bytes);
        }
        let offset = number.saturating_mul(self.piece.into());
        let rest = self.size.saturating_sub(offset);
        let mut bytes = vec![0; narrow(rest.min(self.piece.into()))];
        self.read(offset, &mut bytes)?;
        let bytes = Arc::new(bytes);
        cache().insert(number, Arc::clone(&bytes));
        Ok(bytes)
    }

    fn read_raw(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.blocks
            .read_at(offset, buffer)
            .map_err(|source| Error::Read { offset, source })
    }
}

/// Some bytes of metadata that stay as long as they are needed.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }
}
