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

/// The feature bits that change what is in the log.
const SIXTY_FOUR_BIT: u32 = 0x2;
const ASYNC_COMMIT: u32 = 0x4;
const CHECKSUM_V2: u32 = 0x8;
const CHECKSUM_V3: u32 = 0x10;
const FAST_COMMIT: u32 = 0x20;
const REVOKE: u32 = 0x1;
const KNOWN: u32 = REVOKE | SIXTY_FOUR_BIT | ASYNC_COMMIT | CHECKSUM_V2 | CHECKSUM_V3 | FAST_COMMIT;

/// The fast commits take so many blocks if nothing is said.
const FAST_COMMIT_BLOCKS: u32 = 256;

/// The superblock of a journal. See `fs/jbd2` of the kernel.
#[derive(Debug)]
pub(super) struct Header {
    /// The log is a ring from here
    pub(super) first: u32,
    /// to here.
    pub(super) end: u32,
    /// Where the oldest transaction starts. Zero if there is none.
    pub(super) start: u32,
    /// The number of that transaction.
    pub(super) sequence: u32,
    /// Block numbers have 64 bits.
    pub(super) wide: bool,
    pub(super) sums: Option<Sums>,
    /// Whether what is after the end of the ring are fast commits.
    pub(super) fast_commits: bool,
}

/// How the blocks of the log are summed up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) seed: u32,
    pub(super) version: SumVersion,
    /// Whether they are looked at.
    pub(super) checksums: Checksums,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumVersion {
    Two,
    Three,
}

impl Header {
    /// How many blocks the ring has.
    pub(super) fn length(&self) -> u32 {
        self.end.saturating_sub(self.first)
    }

    /// `blocks` is how many the journal's inode has.
    pub(super) fn parse(
        bytes: &[u8],
        block_size: u32,
        blocks: u64,
        checksums: Checksums,
    ) -> Result<Self, Error> {
        let damaged = |problem| Error::from(Damage::new(Structure::Journal, problem));
        let unsupported = |feature: String| Err(Error::Unsupported { feature });

        let fields = Fields(bytes);
        let version = fields.be32(0x4);
        if fields.be32(0x0) != MAGIC || !matches!(version, 3 | 4) {
            return Err(damaged(DamageKind::Magic));
        }
        // The first version has no features.
        let features = if version == 3 { 0 } else { fields.be32(0x28) };
        if features & !KNOWN != 0 {
            return unsupported(format!("journal features {:#x}", features & !KNOWN));
        }
        let sum_version = match (features & CHECKSUM_V2 != 0, features & CHECKSUM_V3 != 0) {
            (_, true) => Some(SumVersion::Three),
            (true, false) => Some(SumVersion::Two),
            (false, false) => None,
        };
        // Only a sum over the whole transaction tells then whether it is all
        // there.
        if features & ASYNC_COMMIT != 0 && sum_version.is_none() {
            return unsupported("journal_async_commit".to_owned());
        }
        if sum_version.is_some() && checksums == Checksums::Check {
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
            wide: features & SIXTY_FOUR_BIT != 0,
            sums: sum_version.map(|version| Sums {
                seed: crc32c(START, fields.bytes(0x30, 16).unwrap_or_default()),
                version,
                checksums,
            }),
            fast_commits,
        })
    }
}

impl Sums {
    /// Whether a whole block has the sum that is in it.
    pub(super) fn block_matches(&self, bytes: &[u8], at: usize) -> bool {
        self.checksums == Checksums::Ignore
            || crc32c_without(self.seed, bytes, at, size_of::<u32>()) == Fields(bytes).be32(at)
    }

    /// Whether a copy of a block has the sum that is in its tag.
    pub(super) fn copy_matches(&self, sequence: u32, bytes: &[u8], expected: u32) -> bool {
        let sum = crc32c(crc32c(self.seed, &sequence.to_be_bytes()), bytes);
        let kept = match self.version {
            SumVersion::Two => sum & 0xffff,
            SumVersion::Three => sum,
        };
        self.checksums == Checksums::Ignore || kept == expected
    }
}
