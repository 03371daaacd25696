//! Replay of the journal in memory.
//!
//! ```text
//!  log ──replay──> newest copy of each block ──Overlay──> laid over all reads
//! ```
//!
//! A transaction contains copies of whole blocks. It counts only if it is
//! followed by its commit block and all checksums match. The image is not
//! changed: reads return the newest copy of each block.

mod log;
mod overlay;
mod superblock;
mod tags;

use std::fmt;

use self::{
    log::{Log, replay},
    superblock::JournalSuperblock,
};
use super::{
    Damage, DamageKind, Error, Ext4, Inode, Kind, Replay, Structure,
    fields::{Fields, to_usize},
};

pub(super) use overlay::Overlay;

/// Magic number of each block of a journal except the copies.
const MAGIC: u32 = 0xc03b_3998;

/// Tag at the start of fast commits.
const FAST_COMMIT_HEAD: u16 = 9;

/// The state of a journal when the file system was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalState {
    /// There is no journal.
    None,
    /// Nothing in the journal needs to be replayed.
    Clean,
    /// The journal is on another device and needs no recovery.
    External,
    /// The journal was replayed in memory.
    Replayed {
        /// The number of transactions.
        transactions: u64,
        /// The number of blocks that are newer in the journal.
        blocks: usize,
        /// The damage that ended the replay early, unless the writer was just
        /// interrupted there.
        damage: Option<Damage>,
    },
    /// The journal needs recovery, but was ignored as the options say.
    Ignored,
}

impl fmt::Display for JournalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Clean => f.write_str("clean"),
            Self::External => f.write_str("external"),
            Self::Ignored => f.write_str("waits, ignored"),
            Self::Replayed {
                transactions,
                blocks,
                damage,
            } => {
                write!(
                    f,
                    "replayed in memory: {transactions} transactions, {blocks} blocks"
                )?;
                match damage {
                    Some(damage) => write!(f, "; {damage}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Replays the journal if needed. All further reads must go through the
/// returned overlay.
pub(super) fn recover(ext4: &Ext4, from_backup: bool) -> Result<(JournalState, Overlay), Error> {
    let layout = &ext4.superblock;
    let needs_replay = layout.features.needs_recovery();
    let nothing = |state| Ok((state, Overlay::default()));
    if !layout.features.journal() {
        return nothing(JournalState::None);
    }
    if layout.journal_inode == 0 {
        return if needs_replay && ext4.options.replay == Replay::InMemory {
            Err(Error::UnsupportedJournal {
                feature: "an external journal".to_owned(),
            })
        } else if needs_replay {
            nothing(JournalState::Ignored)
        } else {
            nothing(JournalState::External)
        };
    }
    // Backup superblocks do not record whether the journal needs recovery.
    if !needs_replay && !from_backup {
        return nothing(JournalState::Clean);
    }
    if ext4.options.replay == Replay::Never {
        return nothing(JournalState::Ignored);
    }

    let superblock = read_superblock(ext4)?;
    if superblock.start == 0 {
        return nothing(JournalState::Clean);
    }
    let log = Log::new(ext4, &journal_inode(ext4)?)?;
    let replayed = replay(&log, &superblock)?;
    check_fast_commits(ext4, &log, &superblock, replayed.next)?;
    let overlay = Overlay::new(replayed.copies);
    let state = JournalState::Replayed {
        transactions: replayed.transactions,
        blocks: overlay.len(),
        damage: replayed.damage,
    };
    Ok((state, overlay))
}

/// Returns the damage of the journal of an opened file system: what ended its
/// replay, or why it cannot be used although there is nothing to replay.
pub(super) fn damage(ext4: &Ext4) -> Option<Damage> {
    match &ext4.journal {
        JournalState::Replayed { damage, .. } => damage.clone(),
        JournalState::Clean => match read_superblock(ext4) {
            Err(Error::Damaged(damage)) => Some(damage),
            _ => None,
        },
        _ => None,
    }
}

fn read_superblock(ext4: &Ext4) -> Result<JournalSuperblock, Error> {
    let layout = &ext4.superblock;
    let inode = journal_inode(ext4)?;
    let mut bytes = vec![0; to_usize(layout.block_size.into())];
    ext4.read_any(&inode, 0, &mut bytes)?;
    let blocks = inode.size.checked_div(layout.block_size.into());
    let checksums = ext4.options.checksums;
    JournalSuperblock::parse(&bytes, layout.block_size, blocks.unwrap_or(0), checksums)
}

fn journal_inode(ext4: &Ext4) -> Result<Inode, Error> {
    let inode = ext4.inode(ext4.superblock.journal_inode)?;
    if inode.kind != Kind::File || inode.has_inline_data() {
        let damage = Damage::new(Structure::Journal, DamageKind::Missing);
        return Err(damage.of(inode.number).into());
    }
    Ok(inode)
}

/// Fails if there are fast commits to replay. They change single inodes and
/// names instead of blocks and are not supported; without them the file system
/// would be outdated.
fn check_fast_commits(
    ext4: &Ext4,
    log: &Log<'_>,
    superblock: &JournalSuperblock,
    next: u32,
) -> Result<(), Error> {
    if !superblock.fast_commits || !ext4.superblock.features.fast_commit() {
        return Ok(());
    }
    // The first block after the ring stays empty.
    let bytes = log.read(superblock.end.saturating_add(1))?;
    let fields = Fields(&bytes);
    if fields.u16(0) == FAST_COMMIT_HEAD && fields.u32(8) == next {
        return Err(Error::UnsupportedJournal {
            feature: "fast_commit".to_owned(),
        });
    }
    Ok(())
}
