use std::{collections::BTreeMap, time::Instant};

use super::{
    super::{
        Damage, DamageKind, Error, Ext4, Inode, Limit, RunPlace, Structure,
        fields::{Fields, narrow, wide},
    },
    MAGIC,
    header::Header,
    overlay::Copy,
    tags::{Tag, revoked, tags},
};

/// The kinds of blocks.
const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;

/// Where the sum of a commit block is.
const COMMIT_SUM: usize = 0x10;

/// More pieces than this no journal has that is any good.
const MOST_PIECES: usize = 1 << 16;

/// More blocks than this no transaction revokes: they take 16 MiB of memory.
const MOST_REVOKED: usize = 1 << 21;

/// The blocks of a journal, by their number in it.
pub(super) struct Log<'a> {
    ext4: &'a Ext4,
    inode: u32,
    /// First block and byte of the image, sorted.
    pieces: Vec<(u64, u64)>,
    /// Since when it is read.
    since: Instant,
}

impl<'a> Log<'a> {
    pub(super) fn new(ext4: &'a Ext4, inode: &Inode) -> Result<Self, Error> {
        let since = Instant::now();
        let block_size = u64::from(ext4.superblock.block_size);
        let mut pieces = Vec::new();
        for run in ext4.runs(inode) {
            ext4.options.limits.check_time(since, inode.number)?;
            let run = run?;
            let RunPlace::Data(start) = run.place else {
                return Err(damaged(inode.number, DamageKind::Missing).into());
            };
            if pieces.len() == MOST_PIECES {
                return Err(damaged(inode.number, DamageKind::Order).into());
            }
            pieces.push((run.offset.checked_div(block_size).unwrap_or(0), start));
        }
        Ok(Self {
            ext4,
            inode: inode.number,
            pieces,
            since,
        })
    }

    pub(super) fn read(&self, block: u32) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; narrow(self.ext4.superblock.block_size.into())];
        self.ext4.store.read(self.offset(block)?, &mut bytes)?;
        Ok(bytes)
    }

    fn offset(&self, block: u32) -> Result<u64, Damage> {
        let block = u64::from(block);
        let after = self.pieces.partition_point(|(first, _)| *first <= block);
        let (first, start) = after
            .checked_sub(1)
            .and_then(|place| self.pieces.get(place))
            .ok_or_else(|| damaged(self.inode, DamageKind::Block(block)))?;
        Ok(block
            .saturating_sub(*first)
            .saturating_mul(self.ext4.superblock.block_size.into())
            .saturating_add(*start))
    }
}

/// What is in a log.
pub(super) struct Replayed {
    pub(super) copies: BTreeMap<u64, Copy>,
    pub(super) transactions: u64,
    /// The number that the next transaction would have.
    pub(super) next: u32,
    /// Why it ended before its end.
    pub(super) damage: Option<Damage>,
}

/// Goes once through a log, from its start to the first transaction that is not
/// complete. That one and all that follow never happened.
pub(super) fn replay(log: &Log<'_>, header: &Header) -> Result<Replayed, Error> {
    let mut reader = Reader {
        log,
        header,
        next: header.start,
        left: header.length(),
    };
    let mut replayed = Replayed {
        copies: BTreeMap::new(),
        transactions: 0,
        next: header.sequence,
        damage: None,
    };
    let mut open = Transaction::default();
    while let Some((_, bytes)) = reader.block()? {
        let fields = Fields(&bytes);
        if fields.be32(0) != MAGIC || fields.be32(8) != replayed.next {
            return Ok(replayed);
        }
        let tail = bytes.len().saturating_sub(size_of::<u32>());
        let whole = |at| {
            header
                .sums
                .is_none_or(|sums| sums.block_matches(&bytes, at))
        };
        match fields.be32(4) {
            DESCRIPTOR if whole(tail) => {
                for tag in tags(header, &bytes) {
                    let Some((place, copy)) = reader.block()? else {
                        return Ok(replayed);
                    };
                    open.take(log, header, replayed.next, tag, (place, &copy))?;
                }
            }
            REVOKE if whole(tail) => open.revoke(log, revoked(header, &bytes)),
            COMMIT => {
                if !whole(COMMIT_SUM) {
                    let damage = damaged(log.inode, DamageKind::Checksum);
                    open.damage.get_or_insert(damage);
                }
                replayed.damage = open.damage.take();
                if replayed.damage.is_some() {
                    return Ok(replayed);
                }
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

/// What a transaction does, as far as it has been read.
#[derive(Default)]
struct Transaction {
    copies: Vec<(u64, Copy)>,
    revoked: Vec<u64>,
    /// What is wrong with it. Without a commit it was merely interrupted.
    damage: Option<Damage>,
}

impl Transaction {
    /// Takes a copy that the tag is about, and its place in the log.
    fn take(
        &mut self,
        log: &Log<'_>,
        header: &Header,
        sequence: u32,
        tag: Tag,
        (place, bytes): (u32, &[u8]),
    ) -> Result<(), Damage> {
        let sums = header.sums;
        if sums.is_some_and(|sums| !sums.copy_matches(sequence, bytes, tag.sum)) {
            let damage = damaged(log.inode, DamageKind::Checksum);
            self.damage.get_or_insert(damage.at(tag.block));
        }
        // The file system may have become larger, and only the journal knows.
        if !log.ext4.store.has_block(tag.block) {
            let damage = damaged(log.inode, DamageKind::Block(tag.block));
            self.damage.get_or_insert(damage);
        }
        let copy = Copy {
            offset: log.offset(place)?,
            escaped: tag.escaped,
        };
        self.copies.push((tag.block, copy));
        Ok(())
    }

    fn revoke(&mut self, log: &Log<'_>, blocks: impl Iterator<Item = u64>) {
        let room = MOST_REVOKED.saturating_sub(self.revoked.len());
        let mut blocks = blocks.fuse();
        self.revoked.extend(blocks.by_ref().take(room));
        if blocks.next().is_some() {
            let damage = damaged(log.inode, DamageKind::Size(wide(MOST_REVOKED)));
            self.damage.get_or_insert(damage);
        }
    }
}

/// Goes around the ring, once at most.
struct Reader<'a> {
    log: &'a Log<'a>,
    header: &'a Header,
    next: u32,
    left: u32,
}

impl Reader<'_> {
    fn block(&mut self) -> Result<Option<(u32, Vec<u8>)>, Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        let limits = self.log.ext4.options.limits;
        limits.check_time(self.log.since, self.log.inode)?;
        let limit = limits.journal;
        if self.header.length().saturating_sub(left) > limit {
            return Err(Error::Limit {
                what: Limit::Journal,
                limit: limit.into(),
                inode: self.log.inode,
            });
        }
        self.left = left;
        let place = self.next;
        self.next = match place.saturating_add(1) {
            next if next >= self.header.end => self.header.first,
            next => next,
        };
        Ok(Some((place, self.log.read(place)?)))
    }
}

fn damaged(inode: u32, problem: DamageKind) -> Damage {
    Damage::new(Structure::Journal, problem).of(inode)
}
