use std::{
    num::NonZeroUsize,
    ops::{Deref, Range},
    sync::{Arc, Mutex, PoisonError},
};

use lru::LruCache;

use super::{
    Damage, DamageKind, Error, Structure,
    fields::{to_u64, to_usize},
    journal::Overlay,
    superblock::Superblock,
};
use crate::ReadAt;

/// Number of bytes of metadata read at a time: adjacent inodes and descriptors
/// are usually needed together.
const CHUNK_SIZE: u32 = 16 << 10;

/// The blocks of a file system, with the replayed journal applied.
pub(super) struct Store {
    blocks: Box<dyn ReadAt>,
    size: u64,
    block_size: u32,
    /// Number of blocks of the file system.
    count: u64,
    chunk: u32,
    overlay: Overlay,
    /// Recently used metadata, by the number of its chunk.
    cache: Mutex<LruCache<u64, Arc<Vec<u8>>>>,
}

impl Store {
    /// Creates a store whose metadata cache holds at most `cache_size` bytes.
    pub(super) fn new(blocks: Box<dyn ReadAt>, superblock: &Superblock, cache_size: usize) -> Self {
        let block_size = superblock.block_size;
        let chunk = CHUNK_SIZE.max(block_size);
        let most = cache_size.checked_div(to_usize(chunk.into())).unwrap_or(0);
        let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
        Self {
            size: blocks.size(),
            blocks,
            block_size,
            count: superblock.blocks,
            chunk,
            overlay: Overlay::default(),
            cache: Mutex::new(LruCache::sparse(most)),
        }
    }

    /// Sets the number of blocks of the file system.
    pub(super) fn resize(&mut self, count: u64) {
        self.count = count;
    }

    /// Returns whether the image contains a whole block, whatever the size of
    /// the file system.
    pub(super) fn has_block(&self, number: u64) -> bool {
        let end = number
            .checked_add(1)
            .and_then(|next| next.checked_mul(self.block_size.into()));
        end.is_some_and(|end| end <= self.size)
    }

    /// Sets the blocks that are read from the journal.
    pub(super) fn set_overlay(&mut self, overlay: Overlay) {
        self.overlay = overlay;
        let cache = self.cache.get_mut();
        cache.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the byte ranges that are read from the journal.
    pub(super) fn replayed_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let block_size = u64::from(self.block_size);
        self.overlay.blocks().map(move |block| {
            let start = block.saturating_mul(block_size);
            start..start.saturating_add(block_size)
        })
    }

    pub(super) fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Fills the buffer with the bytes at `offset`.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let end = offset.checked_add(to_u64(buffer.len()));
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

    /// Returns whether the journal has newer data for some of these bytes.
    pub(super) fn is_in_journal(&self, offset: u64, length: u64) -> bool {
        let block_size = u64::from(self.block_size).max(1);
        let end = offset.saturating_add(length).div_ceil(block_size);
        let first = offset.checked_div(block_size).unwrap_or(0);
        self.overlay.covers(first, end)
    }

    /// Returns a block of metadata, from the cache if possible. `structure` and
    /// `inode` are for the error.
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

    /// Returns the byte offset of a range of blocks, or `None` if the file
    /// system does not have them all.
    pub(super) fn offset(&self, number: u64, length: u64) -> Option<u64> {
        let end = number.checked_add(length)?;
        if number == 0 || end > self.count {
            return None;
        }
        number.checked_mul(self.block_size.into())
    }

    /// Returns metadata that does not cross the end of a block, from the cache
    /// if possible.
    pub(super) fn bytes(&self, offset: u64, length: u32) -> Result<Bytes, Error> {
        let chunk = u64::from(self.chunk);
        let number = offset.checked_div(chunk).unwrap_or(0);
        let start = to_usize(offset.checked_rem(chunk).unwrap_or(0));
        let length = to_usize(length.into());
        let range = start..start.saturating_add(length);

        match self.chunk(number) {
            Ok(bytes) if range.end <= bytes.len() => Ok(Bytes { bytes, range }),
            // The image ends here, or a part of the chunk cannot be read. Read
            // only the requested bytes, so that the rest stays readable.
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

    fn chunk(&self, number: u64) -> Result<Arc<Vec<u8>>, Error> {
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = cache().get(&number) {
            return Ok(Arc::clone(bytes));
        }
        let offset = number.saturating_mul(self.chunk.into());
        let rest = self.size.saturating_sub(offset);
        let mut bytes = vec![0; to_usize(rest.min(self.chunk.into()))];
        self.read(offset, &mut bytes)?;
        let bytes = Arc::new(bytes);
        cache().put(number, Arc::clone(&bytes));
        Ok(bytes)
    }

    fn read_raw(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.blocks
            .read_at(offset, buffer)
            .map_err(|source| Error::Read { offset, source })
    }
}

/// Metadata that shares the memory of a cached chunk.
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
