use std::{collections::BTreeMap, time::Instant};

use super::{
    super::{
        Damage, DamageKind, Error, Ext4, Inode, Limit, RunPlace, Structure,
        fields::{Fields, to_u64, to_usize},
    },
    MAGIC,
    overlay::BlockCopy,
    superblock::JournalSuperblock,
    tags::{Tag, revoked, tags},
};

/// Types of log blocks.
const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;

/// Offsets of the checksum and the time in a commit block.
const COMMIT_CHECKSUM: usize = 0x10;
const COMMIT_TIME: usize = 0x30;

/// Maximum number of runs of a journal. More are treated as damage.
const MAX_RUNS: usize = 1 << 16;

/// Maximum number of blocks that a transaction revokes: they take 16 MiB of
/// memory.
const MAX_REVOKED: usize = 1 << 21;

/// The blocks of a journal, by their number in it.
pub(super) struct Log<'a> {
    ext4: &'a Ext4,
    inode: u32,
    /// First block and byte offset in the image of each run, sorted.
    runs: Vec<(u64, u64)>,
    /// When reading began, for the time limit.
    since: Instant,
}

impl<'a> Log<'a> {
    pub(super) fn new(ext4: &'a Ext4, inode: &Inode) -> Result<Self, Error> {
        let since = Instant::now();
        let block_size = u64::from(ext4.superblock.block_size);
        let mut runs = Vec::new();
        for run in ext4.runs(inode) {
            ext4.options.limits.check_time(since, inode.number)?;
            let run = run?;
            let RunPlace::Data(start) = run.place else {
                return Err(damaged(inode.number, DamageKind::Missing).into());
            };
            if runs.len() == MAX_RUNS {
                return Err(damaged(inode.number, DamageKind::Order).into());
            }
            runs.push((run.offset.checked_div(block_size).unwrap_or(0), start));
        }
        Ok(Self {
            ext4,
            inode: inode.number,
            runs,
            since,
        })
    }

    pub(super) fn read(&self, block: u32) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; to_usize(self.ext4.superblock.block_size.into())];
        self.ext4.store.read(self.offset(block)?, &mut bytes)?;
        Ok(bytes)
    }

    fn offset(&self, block: u32) -> Result<u64, Damage> {
        let block = u64::from(block);
        let after = self.runs.partition_point(|(first, _)| *first <= block);
        let (first, start) = after
            .checked_sub(1)
            .and_then(|place| self.runs.get(place))
            .ok_or_else(|| damaged(self.inode, DamageKind::Block(block)))?;
        Ok(block
            .saturating_sub(*first)
            .saturating_mul(self.ext4.superblock.block_size.into())
            .saturating_add(*start))
    }
}

/// The result of replaying a log.
pub(super) struct Replayed {
    pub(super) copies: BTreeMap<u64, BlockCopy>,
    pub(super) transactions: u64,
    /// The sequence number of the next transaction.
    pub(super) next: u32,
    /// When the last transaction was committed, in seconds.
    time: u64,
    /// Why the replay ended early.
    pub(super) damage: Option<Damage>,
}

/// Replays a log from its start to the first incomplete transaction. That one
/// and all after it are discarded.
pub(super) fn replay(log: &Log<'_>, superblock: &JournalSuperblock) -> Result<Replayed, Error> {
    let mut reader = RingReader {
        log,
        superblock,
        next: superblock.start,
        left: superblock.length(),
    };
    let mut replayed = Replayed {
        copies: BTreeMap::new(),
        transactions: 0,
        next: superblock.sequence,
        time: 0,
        damage: None,
    };
    let mut open = Transaction::default();
    while let Some((_, bytes)) = reader.block()? {
        let fields = Fields(&bytes);
        if fields.be32(0) != MAGIC || fields.be32(8) != replayed.next {
            return Ok(replayed);
        }
        let tail = bytes.len().saturating_sub(size_of::<u32>());
        let checksum_ok = |at| {
            superblock
                .checksums
                .is_none_or(|checksums| checksums.block_matches(&bytes, at))
        };
        match fields.be32(4) {
            DESCRIPTOR => {
                open.check(log, checksum_ok(tail));
                for tag in tags(superblock, &bytes) {
                    let Some((place, copy)) = reader.block()? else {
                        return Ok(replayed);
                    };
                    open.take(log, superblock, replayed.next, tag, (place, &copy))?;
                }
            }
            REVOKE => {
                open.check(log, checksum_ok(tail));
                match revoked(superblock, &bytes) {
                    Ok(blocks) => open.revoke(log, blocks),
                    Err(problem) => {
                        replayed.damage = Some(damaged(log.inode, problem));
                        return Ok(replayed);
                    }
                }
            }
            COMMIT => {
                open.check(log, checksum_ok(COMMIT_CHECKSUM));
                let time = fields.be64(COMMIT_TIME);
                if let Some(damage) = open.damage.take() {
                    // A commit that is older than the last one is left over from
                    // an earlier use of the blocks, with other checksums.
                    let is_stale = damage.problem == DamageKind::Checksum && time < replayed.time;
                    replayed.damage = (!is_stale).then_some(damage);
                    return Ok(replayed);
                }
                replayed.time = time;
                replayed.commit(std::mem::take(&mut open));
            }
            _ => return Ok(replayed),
        }
    }
    Ok(replayed)
}

impl Replayed {
    fn commit(&mut self, transaction: Transaction) {
        self.copies.extend(transaction.copies);
        for block in transaction.revoked {
            self.copies.remove(&block);
        }
        self.transactions = self.transactions.saturating_add(1);
        self.next = self.next.wrapping_add(1);
    }
}

/// A transaction, as far as it has been read.
#[derive(Default)]
struct Transaction {
    copies: Vec<(u64, BlockCopy)>,
    revoked: Vec<u64>,
    /// Damage in the transaction. It counts only if there is a commit; without
    /// one the transaction was merely interrupted.
    damage: Option<Damage>,
}

impl Transaction {
    fn check(&mut self, log: &Log<'_>, checksum_ok: bool) {
        if !checksum_ok {
            self.damaged(log, DamageKind::Checksum);
        }
    }

    fn damaged(&mut self, log: &Log<'_>, problem: DamageKind) {
        self.damage.get_or_insert(damaged(log.inode, problem));
    }

    /// Adds the copy of a block that a tag describes, with its place in the
    /// log.
    fn take(
        &mut self,
        log: &Log<'_>,
        superblock: &JournalSuperblock,
        sequence: u32,
        tag: Tag,
        (place, bytes): (u32, &[u8]),
    ) -> Result<(), Damage> {
        let checksums = superblock.checksums;
        if checksums.is_some_and(|checksums| !checksums.copy_matches(sequence, bytes, tag.sum)) {
            let damage = damaged(log.inode, DamageKind::Checksum);
            self.damage.get_or_insert(damage.at(tag.block));
        }
        // Check against the image, not the file system: it may have been
        // enlarged in this journal.
        if !log.ext4.store.has_block(tag.block) {
            self.damaged(log, DamageKind::Block(tag.block));
        }
        let copy = BlockCopy {
            offset: log.offset(place)?,
            escaped: tag.escaped,
        };
        self.copies.push((tag.block, copy));
        Ok(())
    }

    fn revoke(&mut self, log: &Log<'_>, blocks: impl Iterator<Item = u64>) {
        let room = MAX_REVOKED.saturating_sub(self.revoked.len());
        let mut blocks = blocks.fuse();
        self.revoked.extend(blocks.by_ref().take(room));
        if blocks.next().is_some() {
            self.damaged(log, DamageKind::Size(to_u64(MAX_REVOKED)));
        }
    }
}

/// Reads the blocks of the ring, each once at most.
struct RingReader<'a> {
    log: &'a Log<'a>,
    superblock: &'a JournalSuperblock,
    next: u32,
    left: u32,
}

impl RingReader<'_> {
    fn block(&mut self) -> Result<Option<(u32, Vec<u8>)>, Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        let limits = self.log.ext4.options.limits;
        limits.check_time(self.log.since, self.log.inode)?;
        let limit = limits.journal;
        if self.superblock.length().saturating_sub(left) > limit {
            return Err(Error::Limit {
                what: Limit::Journal,
                limit: limit.into(),
                inode: self.log.inode,
            });
        }
        self.left = left;
        let place = self.next;
        self.next = match place.saturating_add(1) {
            next if next >= self.superblock.end => self.superblock.first,
            next => next,
        };
        Ok(Some((place, self.log.read(place)?)))
    }
}

fn damaged(inode: u32, problem: DamageKind) -> Damage {
    Damage::new(Structure::Journal, problem).of(inode)
}
