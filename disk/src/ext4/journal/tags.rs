use super::{
    super::{
        DamageKind,
        fields::{Fields, join, to_usize},
    },
    superblock::{ChecksumVersion, JournalSuperblock},
};

const ESCAPED: u32 = 0x1;
const SAME_JOURNAL: u32 = 0x2;
const LAST: u32 = 0x8;

/// Length of the header of each log block.
pub(super) const BLOCK_HEADER: usize = 12;

const UUID: usize = 16;

/// A tag: which block the next log block is a copy of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) block: u64,
    pub(super) escaped: bool,
    pub(super) sum: u32,
}

/// Returns the tags of a descriptor block.
pub(super) fn tags(superblock: &JournalSuperblock, bytes: &[u8]) -> impl Iterator<Item = Tag> {
    let version = superblock.checksums.map(|checksums| checksums.version);
    let is_64bit = superblock.is_64bit;
    let length: usize = match (version, is_64bit) {
        (Some(ChecksumVersion::V3), _) => 16,
        (Some(ChecksumVersion::V2), true) => 14,
        (Some(ChecksumVersion::V2), false) => 10,
        (None, true) => 12,
        (None, false) => 8,
    };
    let end = bytes.len().saturating_sub(tail(superblock));
    let bytes = bytes.get(..end).unwrap_or_default();
    let mut next = Some(BLOCK_HEADER);
    std::iter::from_fn(move || {
        let at = next.take()?;
        let fields = Fields(Fields(bytes).bytes(at, length)?);
        let (flags, sum) = match version {
            Some(ChecksumVersion::V3) => (fields.be32(4), fields.be32(12)),
            _ => (fields.be16(6).into(), fields.be16(4).into()),
        };
        if flags & LAST == 0 {
            let own = if flags & SAME_JOURNAL == 0 { UUID } else { 0 };
            next = at.checked_add(length).and_then(|end| end.checked_add(own));
        }
        let high = if is_64bit { fields.be32(8) } else { 0 };
        Some(Tag {
            block: join(high, fields.be32(0)),
            escaped: flags & ESCAPED != 0,
            sum,
        })
    })
}

/// Returns the blocks that a revoke block lists. Older copies of these do not
/// count.
///
/// # Errors
///
/// [`DamageKind::Size`] if the list is longer than the block.
pub(super) fn revoked(
    superblock: &JournalSuperblock,
    bytes: &[u8],
) -> Result<impl Iterator<Item = u64>, DamageKind> {
    let length = if superblock.is_64bit { 8 } else { 4 };
    let start = BLOCK_HEADER.saturating_add(size_of::<u32>());
    let used = Fields(bytes).be32(BLOCK_HEADER);
    let end = bytes.len().saturating_sub(tail(superblock));
    if to_usize(used.into()) > end {
        return Err(DamageKind::Size(used.into()));
    }
    let records = bytes.get(start..to_usize(used.into())).unwrap_or_default();
    let records = records.chunks_exact(length);
    Ok(records.map(|record| match record.len() {
        8 => Fields(record).be64(0),
        _ => Fields(record).be32(0).into(),
    }))
}

/// Returns the length of the checksum at the end of a descriptor or revoke
/// block.
fn tail(superblock: &JournalSuperblock) -> usize {
    match superblock.checksums {
        Some(_) => size_of::<u32>(),
        None => 0,
    }
}
