use super::{
    super::{
        Checksums, Damage, DamageKind, Error, Structure,
        checksum::{START, crc32c, crc32c_without},
        fields::Fields,
    },
    MAGIC,
};

const LENGTH: usize = 1024;
const CHECKSUM: usize = 0xfc;

/// Feature bits that affect the log.
const SIXTY_FOUR_BIT: u32 = 0x2;
const ASYNC_COMMIT: u32 = 0x4;
const CHECKSUM_V2: u32 = 0x8;
const CHECKSUM_V3: u32 = 0x10;
const FAST_COMMIT: u32 = 0x20;
const REVOKE: u32 = 0x1;
const KNOWN: u32 = REVOKE | SIXTY_FOUR_BIT | ASYNC_COMMIT | CHECKSUM_V2 | CHECKSUM_V3 | FAST_COMMIT;

/// Number of blocks for fast commits if the superblock does not record it.
const FAST_COMMIT_BLOCKS: u32 = 256;

/// The superblock of a journal: see `fs/jbd2` in the kernel.
#[derive(Debug)]
pub(super) struct JournalSuperblock {
    /// The first block of the log, which is a ring buffer.
    pub(super) first: u32,
    /// The end of the log (exclusive).
    pub(super) end: u32,
    /// The block of the oldest transaction, or zero if the log is empty.
    pub(super) start: u32,
    /// The sequence number of that transaction.
    pub(super) sequence: u32,
    /// Whether block numbers have 64 bits.
    pub(super) is_64bit: bool,
    pub(super) checksums: Option<JournalChecksums>,
    /// Whether fast commits follow the end of the ring.
    pub(super) fast_commits: bool,
}

/// The checksums of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct JournalChecksums {
    pub(super) seed: u32,
    pub(super) version: ChecksumVersion,
    /// Whether they are checked.
    pub(super) checksums: Checksums,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChecksumVersion {
    V2,
    V3,
}

impl JournalSuperblock {
    /// Returns the number of blocks in the ring.
    pub(super) fn length(&self) -> u32 {
        self.end.saturating_sub(self.first)
    }

    /// Parses and checks the superblock. `blocks` is the number of blocks of
    /// the journal's inode.
    pub(super) fn parse(
        bytes: &[u8],
        block_size: u32,
        blocks: u64,
        checksums: Checksums,
    ) -> Result<Self, Error> {
        let damaged = |problem| Error::from(Damage::new(Structure::Journal, problem));
        let unsupported = |feature: String| Err(Error::UnsupportedJournal { feature });

        let fields = Fields(bytes);
        let version = fields.be32(0x4);
        if fields.be32(0x0) != MAGIC || !matches!(version, 3 | 4) {
            return Err(damaged(DamageKind::Magic));
        }
        // Version 1 has no features.
        let features = if version == 3 { 0 } else { fields.be32(0x28) };
        if features & !KNOWN != 0 {
            return unsupported(format!("its set of features {:#x}", features & !KNOWN));
        }
        let csum_version = match (features & CHECKSUM_V2 != 0, features & CHECKSUM_V3 != 0) {
            (_, true) => Some(ChecksumVersion::V3),
            (true, false) => Some(ChecksumVersion::V2),
            (false, false) => None,
        };
        // Only a checksum of the whole transaction then shows whether it is
        // complete.
        if features & ASYNC_COMMIT != 0 && csum_version.is_none() {
            return unsupported("journal_async_commit".to_owned());
        }
        if csum_version.is_some() && checksums == Checksums::Check {
            let whole = fields.bytes(0, LENGTH).unwrap_or_default();
            let sum = crc32c_without(START, whole, CHECKSUM, size_of::<u32>());
            if fields.u8(0x50) != 4 || sum != fields.be32(CHECKSUM) {
                return Err(damaged(DamageKind::Checksum));
            }
        }
        if fields.be32(0xc) != block_size {
            return Err(damaged(DamageKind::Size(fields.be32(0xc).into())));
        }
        let (length, first, start) = (fields.be32(0x10), fields.be32(0x14), fields.be32(0x1c));
        let fast_commits = features & FAST_COMMIT != 0;
        let kept = match fields.be32(0x54) {
            _ if !fast_commits => 0,
            0 => FAST_COMMIT_BLOCKS,
            kept => kept,
        };
        let end = length.saturating_sub(kept);
        if u64::from(length) > blocks || first == 0 || first >= end {
            return Err(damaged(DamageKind::Size(length.into())));
        }
        if start != 0 && !(first..end).contains(&start) {
            return Err(damaged(DamageKind::Block(start.into())));
        }
        Ok(Self {
            first,
            end,
            start,
            sequence: fields.be32(0x18),
            is_64bit: features & SIXTY_FOUR_BIT != 0,
            checksums: csum_version.map(|version| JournalChecksums {
                seed: crc32c(START, fields.bytes(0x30, 16).unwrap_or_default()),
                version,
                checksums,
            }),
            fast_commits,
        })
    }
}

impl JournalChecksums {
    /// Returns whether the checksum in a block matches.
    pub(super) fn block_matches(&self, bytes: &[u8], at: usize) -> bool {
        self.checksums == Checksums::Ignore
            || crc32c_without(self.seed, bytes, at, size_of::<u32>()) == Fields(bytes).be32(at)
    }

    /// Returns whether a copy of a block matches the checksum in its tag.
    pub(super) fn copy_matches(&self, sequence: u32, bytes: &[u8], expected: u32) -> bool {
        let sum = crc32c(crc32c(self.seed, &sequence.to_be_bytes()), bytes);
        let kept = match self.version {
            ChecksumVersion::V2 => sum & 0xffff,
            ChecksumVersion::V3 => sum,
        };
        self.checksums == Checksums::Ignore || kept == expected
    }
}
