use super::{
    super::fields::{Fields, join},
    header::{Header, SumVersion},
};

const ESCAPED: u32 = 0x1;
const SAME_JOURNAL: u32 = 0x2;
const LAST: u32 = 0x8;

/// How long the header of each block of the log is.
pub(super) const BLOCK_HEADER: usize = 12;

const UUID: usize = 16;

/// What the next block of the log is a copy of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) block: u64,
    pub(super) escaped: bool,
    pub(super) sum: u32,
}

/// The tags of a descriptor block.
pub(super) fn tags(header: &Header, bytes: &[u8]) -> impl Iterator<Item = Tag> {
    let version = header.sums.map(|sums| sums.version);
    let wide = header.wide;
    let length: usize = match (version, wide) {
        (Some(SumVersion::Three), _) => 16,
        (Some(SumVersion::Two), true) => 14,
        (Some(SumVersion::Two), false) => 10,
        (None, true) => 12,
        (None, false) => 8,
    };
    // The sum of the descriptor is at its end.
    let tail = if version.is_some() {
        size_of::<u32>()
    } else {
        0
    };
    let bytes = bytes
        .get(..bytes.len().saturating_sub(tail))
        .unwrap_or_default();
    let mut next = Some(BLOCK_HEADER);
    std::iter::from_fn(move || {
        let at = next.take()?;
        let fields = Fields(Fields(bytes).bytes(at, length)?);
        let (flags, sum) = match version {
            Some(SumVersion::Three) => (fields.be32(4), fields.be32(12)),
            _ => (fields.be16(6).into(), fields.be16(4).into()),
        };
        if flags & LAST == 0 {
            let own = if flags & SAME_JOURNAL == 0 { UUID } else { 0 };
            next = at.checked_add(length).and_then(|end| end.checked_add(own));
        }
        let high = if wide { fields.be32(8) } else { 0 };
        Some(Tag {
            block: join(high, fields.be32(0)),
            escaped: flags & ESCAPED != 0,
            sum,
        })
    })
}

/// The blocks of which a revoke block says that older copies do not count.
pub(super) fn revoked(header: &Header, bytes: &[u8]) -> impl Iterator<Item = u64> {
    let length = if header.wide { 8 } else { 4 };
    let start = BLOCK_HEADER.saturating_add(size_of::<u32>());
    let used = usize::try_from(Fields(bytes).be32(BLOCK_HEADER)).unwrap_or(usize::MAX);
    let records = bytes.get(start..used.min(bytes.len())).unwrap_or_default();
    records
        .chunks_exact(length)
        .map(|record| match record.len() {
            8 => Fields(record).be64(0),
            _ => Fields(record).be32(0).into(),
        })
}
