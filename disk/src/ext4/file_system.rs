use std::fmt;

use super::{
    Checksums, Damage, DamageKind, Error, JournalState, Options, Structure, SuperblockCopy,
    fields::to_u64,
    journal,
    store::Store,
    superblock::{self, Superblock},
    system_zone::SystemZone,
};
use crate::ReadAt;

/// An ext2, ext3 or ext4 file system, opened for reading.
///
/// Can be read from several threads at once.
pub struct Ext4 {
    pub(super) superblock: Superblock,
    pub(super) store: Store,
    pub(super) options: Options,
    pub(super) journal: JournalState,
    pub(super) zone: SystemZone,
    damage: Vec<Damage>,
}

impl Ext4 {
    /// Opens a file system. If its journal needs recovery, it is replayed in
    /// memory.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use vmcell_disk::ext4::{Ext4, Options, SymlinkPolicy};
    ///
    /// let ext4 = Ext4::open(std::fs::File::open("base.ext4")?, Options::default())?;
    /// let inode = ext4.lookup(b"/etc/hostname", SymlinkPolicy::All)?;
    /// for run in ext4.runs(&inode) {
    ///     println!("{:?}", run?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoExtFileSystem`]; [`Error::Unsupported`]; [`Error::Damaged`]
    /// if the superblock or the journal is damaged; [`Error::Limit`] if the
    /// journal is too long; [`Error::Read`].
    pub fn open(blocks: impl ReadAt + 'static, options: Options) -> Result<Self, Error> {
        let blocks: Box<dyn ReadAt> = Box::new(blocks);
        let superblock = match options.superblock {
            SuperblockCopy::Primary => read_primary(&*blocks, &options)?,
            SuperblockCopy::Backup => find_backup(&*blocks, &options)?,
        };
        let mut ext4 = Self {
            store: Store::new(blocks, &superblock, options.limits.cache),
            superblock,
            options,
            journal: JournalState::None,
            zone: SystemZone::default(),
            damage: Vec::new(),
        };
        let from_backup = options.superblock == SuperblockCopy::Backup;
        let (state, overlay) = journal::recover(&ext4, from_backup)?;
        let replayed = matches!(state, JournalState::Replayed { .. });
        ext4.journal = state;
        ext4.store.set_overlay(overlay);
        if replayed && !from_backup {
            ext4.read_superblock_again()?;
        }
        if options.checksums == Checksums::Check {
            let (zone, damage) = ext4.scan_groups();
            ext4.zone = zone;
            ext4.damage.extend(damage);
            ext4.damage.extend(journal::damage(&ext4));
        }
        Ok(ext4)
    }

    /// Returns damage that was found when the file system was opened and for
    /// which the kernel would refuse to mount it. The rest can still be read,
    /// but is older than it should be if the journal is damaged.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Returns the byte ranges of the file system that are read from the
    /// journal instead of their own place, in order.
    pub fn replayed_ranges(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        self.store.replayed_ranges()
    }

    /// Reads the superblock again, since the journal may contain a newer one,
    /// for example of a file system that was enlarged.
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
    let end = offset.saturating_add(to_u64(superblock::LENGTH));
    if end > blocks.size() {
        return Err(Error::NoExtFileSystem);
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

/// Reads the primary superblock. If it is missing but a backup exists, it is
/// damaged: the file system is there.
fn read_primary(blocks: &dyn ReadAt, options: &Options) -> Result<Superblock, Error> {
    match read_superblock(blocks, superblock::OFFSET, options) {
        Err(Error::NoExtFileSystem) if has_backup_superblock(blocks) => {
            Err(Damage::new(Structure::Superblock, DamageKind::Magic).into())
        }
        result => result,
    }
}

/// Returns whether there is an intact backup superblock.
pub(crate) fn has_backup_superblock(blocks: &dyn ReadAt) -> bool {
    find_backup(blocks, &Options::default()).is_ok()
}

/// The groups that have a backup superblock, unless the file system has other
/// ones (`sparse_super2`).
const BACKUP_GROUPS: [u16; 5] = [1, 3, 5, 7, 9];

/// Reads the first intact backup superblock. The length of a group depends on
/// the block size: it has as many blocks as one block has bits.
fn find_backup(blocks: &dyn ReadAt, options: &Options) -> Result<Superblock, Error> {
    let mut problem = Error::NoExtFileSystem;
    let options = Options {
        superblock: SuperblockCopy::Backup,
        ..*options
    };
    for group in BACKUP_GROUPS {
        for power in 0..=6 {
            let block_size = 1024_u64 << power;
            let first_data_block = u64::from(power == 0);
            let block = block_size
                .saturating_mul(8)
                .saturating_mul(group.into())
                .saturating_add(first_data_block);
            let offset = block.saturating_mul(block_size);
            match read_superblock(blocks, offset, &options) {
                // File systems of revision 0 do not record the group.
                Ok(mut found)
                    if u64::from(found.block_size) == block_size
                        && [0, group].contains(&found.group) =>
                {
                    found.group = group;
                    return Ok(found);
                }
                Ok(_) | Err(Error::NoExtFileSystem) => {}
                Err(error) => problem = error,
            }
        }
    }
    Err(problem)
}
