use std::fmt;

use super::{
    Damage, DamageKind, Error, JournalState, Options, Structure, SuperblockCopy,
    fields::wide,
    journal,
    store::Store,
    superblock::{self, Superblock},
};
use crate::ReadAt;

/// An ext2, ext3 or ext4 file system, to be read.
///
/// Several threads may read at the same time.
pub struct Ext4 {
    pub(super) superblock: Superblock,
    pub(super) store: Store,
    pub(super) options: Options,
    pub(super) journal: JournalState,
}

impl Ext4 {
    /// Opens the file system of an image. If its journal waits, it is replayed
    /// in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`], [`Error::Unsupported`], [`Error::Damaged`] if the
    /// superblock or the journal is damaged, [`Error::Limit`] if the journal is
    /// too long, [`Error::Read`].
    pub fn open(blocks: impl ReadAt + 'static, options: Options) -> Result<Self, Error> {
        let blocks: Box<dyn ReadAt> = Box::new(blocks);
        let superblock = match options.superblock {
            SuperblockCopy::Primary => read_superblock(&*blocks, superblock::OFFSET, &options)?,
            SuperblockCopy::Backup => find_backup(&*blocks, &options)?,
        };
        let mut ext4 = Self {
            store: Store::new(blocks, &superblock, options.limits.cache),
            superblock,
            options,
            journal: JournalState::None,
        };
        let from_backup = options.superblock == SuperblockCopy::Backup;
        let (state, overlay) = journal::recover(&ext4, from_backup)?;
        let replayed = matches!(state, JournalState::Replayed { .. });
        ext4.journal = state;
        ext4.store.lay_over(overlay);
        if replayed && !from_backup {
            ext4.read_superblock_again()?;
        }
        Ok(ext4)
    }

    /// Which bytes of the image are not read where they belong, but from the
    /// journal, in order.
    pub fn replayed(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        self.store.replayed()
    }

    /// The journal may have a newer one, also one of a file system that has become
    /// larger.
    fn read_superblock_again(&mut self) -> Result<(), Error> {
        let mut bytes = Box::new([0; superblock::LENGTH]);
        self.store.read(superblock::OFFSET, &mut *bytes)?;
        let newer = Superblock::parse(bytes, self.options.checksums)?;
        if newer.block_size != self.superblock.block_size {
            let problem = DamageKind::Size(newer.block_size.into());
            return Err(Damage::new(Structure::Superblock, problem).into());
        }
        self.store.resize(newer.blocks);
        self.superblock = newer;
        self.superblock.group = 0;
        Ok(())
    }
}

impl fmt::Debug for Ext4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ext4")
            .field("blocks", &self.superblock.blocks)
            .field("block_size", &self.superblock.block_size)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

fn read_superblock(
    blocks: &dyn ReadAt,
    offset: u64,
    options: &Options,
) -> Result<Superblock, Error> {
    let mut bytes = Box::new([0; superblock::LENGTH]);
    let end = offset.saturating_add(wide(superblock::LENGTH));
    if end > blocks.size() {
        return Err(Error::Foreign);
    }
    blocks
        .read_at(offset, &mut *bytes)
        .map_err(|source| Error::Read { offset, source })?;
    let mut superblock = Superblock::parse(bytes, options.checksums)?;
    if options.superblock == SuperblockCopy::Primary {
        superblock.group = 0;
    }
    Ok(superblock)
}

/// The copy in the second group. How long the first is depends on the size of
/// blocks: it has as many as one block has bits.
fn find_backup(blocks: &dyn ReadAt, options: &Options) -> Result<Superblock, Error> {
    let mut problem = Error::Foreign;
    for power in 0..=6 {
        let block_size = 1024_u64 << power;
        let first_data_block = u64::from(power == 0);
        let block = block_size
            .saturating_mul(8)
            .saturating_add(first_data_block);
        match read_superblock(blocks, block.saturating_mul(block_size), options) {
            Ok(found) if u64::from(found.block_size) == block_size && found.group == 1 => {
                return Ok(found);
            }
            Ok(_) | Err(Error::Foreign) => {}
            Err(error) => problem = error,
        }
    }
    Err(problem)
}
