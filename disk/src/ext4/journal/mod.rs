//! The journal, replayed in memory.
//!
//! ```text
//!  log ──replay──> newest copy of each block ──Overlay──> laid over all reads
//! ```
//!
//! Transactions are copies of whole blocks. Only those count that are followed
//! by their commit, and of which every copy has its checksum. The image is not
//! written: whoever reads a block gets its newest copy.

mod header;
mod log;
mod overlay;
mod tags;

use self::{
    header::Header,
    log::{Log, replay},
};
use super::{Damage, DamageKind, Error, Ext4, Kind, Replay, Structure, fields::Fields};

pub(super) use overlay::Overlay;

/// What each block of a journal starts with, but the copies.
const MAGIC: u32 = 0xc03b_3998;

/// The mark at the start of fast commits.
const FAST_COMMIT_HEAD: u16 = 9;

/// How a file system's journal was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalState {
    /// There is none.
    None,
    /// All that was in it is in the file system.
    Clean,
    /// It is on another device, and nothing in it waits.
    External,
    /// It was replayed in memory.
    Replayed {
        /// How many transactions it had.
        transactions: u64,
        /// How many blocks are newer in it.
        blocks: usize,
        /// Why later transactions were left out, if not because the writer was
        /// interrupted there.
        damage: Option<Damage>,
    },
    /// It waits to be replayed, and was left alone as the options say.
    Ignored,
}

/// Reads the journal. The overlay is what it has to be read through from now on.
pub(super) fn recover(ext4: &Ext4, from_backup: bool) -> Result<(JournalState, Overlay), Error> {
    let layout = &ext4.superblock;
    let waits = layout.features.needs_recovery();
    let nothing = |state| Ok((state, Overlay::default()));
    if !layout.features.journal() {
        return nothing(JournalState::None);
    }
    if layout.journal_inode == 0 {
        return if waits && ext4.options.replay == Replay::InMemory {
            Err(Error::Unsupported {
                feature: "an external journal that has to be replayed".to_owned(),
            })
        } else if waits {
            nothing(JournalState::Ignored)
        } else {
            nothing(JournalState::External)
        };
    }
    // Copies of the superblock do not say whether the journal waits.
    if !waits && !from_backup {
        return nothing(JournalState::Clean);
    }
    if ext4.options.replay == Replay::Never {
        return nothing(JournalState::Ignored);
    }

    let inode = ext4.inode(layout.journal_inode)?;
    if inode.kind != Kind::File || inode.has_inline_data() {
        return Err(Damage::new(Structure::Journal, DamageKind::Missing)
            .of(inode.number)
            .into());
    }
    let log = Log::new(ext4, &inode)?;
    let blocks = inode
        .size
        .checked_div(layout.block_size.into())
        .unwrap_or(0);
    let header = Header::parse(
        &log.read(0)?,
        layout.block_size,
        blocks,
        ext4.options.checksums,
    )?;
    if header.start == 0 {
        return nothing(JournalState::Clean);
    }
    let replayed = replay(&log, &header)?;
    check_fast_commits(ext4, &log, &header, replayed.next)?;
    let overlay = Overlay::new(replayed.copies);
    let state = JournalState::Replayed {
        transactions: replayed.transactions,
        blocks: overlay.len(),
        damage: replayed.damage,
    };
    Ok((state, overlay))
}

/// Fast commits change single inodes and names, not blocks. They are not
/// replayed here, and without them the file system would be an old one.
fn check_fast_commits(ext4: &Ext4, log: &Log<'_>, header: &Header, next: u32) -> Result<(), Error> {
    if !header.fast_commits || !ext4.superblock.features.fast_commit() {
        return Ok(());
    }
    // The block after the ring stays empty.
    let bytes = log.read(header.end.saturating_add(1))?;
    let fields = Fields(&bytes);
    if fields.u16(0) == FAST_COMMIT_HEAD && fields.u32(8) == next {
        return Err(Error::Unsupported {
            feature: "fast_commit, and has fast commits that have to be replayed".to_owned(),
        });
    }
    Ok(())
}
