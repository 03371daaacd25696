use std::ops::Range;

use super::{
    DamageKind, Kind,
    checksum::{START, crc32c},
    fields::Fields,
    inode::ROOT,
    superblock::Superblock,
};

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// The name. It is not empty, `.` or `..`, and contains neither `/` nor
    /// zero bytes, but can contain any other bytes. An encrypted name is
    /// encoded in letters and digits.
    pub name: Vec<u8>,
    /// The inode number.
    pub inode: u32,
    /// The type recorded in the directory, if any. The inode is authoritative.
    pub kind: Option<Kind>,
}

/// Length of an entry without its name.
const HEADER: usize = 8;

/// Length of the entry `.`.
const DOT: usize = 12;

/// The slot at an offset of a directory block.
#[derive(Debug)]
pub(super) struct Slot {
    /// The offset of the next slot.
    pub(super) next: usize,
    pub(super) content: SlotContent,
}

#[derive(Debug)]
pub(super) enum SlotContent {
    /// A removed entry, `.` or `..`, an index or a checksum.
    Unused,
    Entry(RawEntry),
    Damaged(DamageKind),
}

#[derive(Debug)]
pub(super) struct RawEntry {
    pub(super) inode: u32,
    pub(super) kind: Option<Kind>,
    /// The range of the name in the block.
    pub(super) name: Range<usize>,
}

/// Parses the entries of a directory.
#[derive(Clone, Copy)]
pub(super) struct EntryParser<'a> {
    pub(super) superblock: &'a Superblock,
    /// Whether names are encrypted and can contain any bytes.
    pub(super) encrypted: bool,
}

impl EntryParser<'_> {
    /// Parses the slot at an offset of a block. Fails if its length is invalid,
    /// so that the next slot is not known.
    pub(super) fn slot(&self, block: &[u8], at: usize) -> Result<Slot, DamageKind> {
        let length = self.record_length(block, at);
        let rest = block.len().saturating_sub(at);
        let name_length = usize::from(Fields(block).u8(at.saturating_add(6)));
        let fits = length.is_multiple_of(4)
            && length >= HEADER.saturating_add(name_length)
            && length <= rest;
        if rest < HEADER || !fits {
            return Err(DamageKind::Size(super::fields::to_u64(length)));
        }
        Ok(Slot {
            next: at.saturating_add(length),
            content: self.content(block, at),
        })
    }

    /// Parses a slot with an invalid length. The next one usually starts after
    /// its name.
    pub(super) fn slot_by_name(&self, block: &[u8], at: usize) -> Option<Slot> {
        let name_length = usize::from(Fields(block).u8(at.checked_add(6)?));
        let next = at
            .checked_add(HEADER)?
            .checked_add(name_length)?
            .checked_next_multiple_of(4)?;
        let content = self.content(block, at);
        let plausible = next <= block.len() && matches!(content, SlotContent::Entry(_));
        plausible.then_some(Slot { next, content })
    }

    fn content(&self, block: &[u8], at: usize) -> SlotContent {
        let fields = Fields(block);
        let inode = fields.u32(at);
        if inode == 0 {
            return SlotContent::Unused;
        }
        let start = at.saturating_add(HEADER);
        let name = start..start.saturating_add(fields.u8(at.saturating_add(6)).into());
        let bytes = block.get(name.clone()).unwrap_or_default();
        if matches!(bytes, b"." | b"..") {
            return SlotContent::Unused;
        }
        let allowed = self.encrypted || !bytes.iter().any(|byte| matches!(byte, 0 | b'/'));
        if bytes.is_empty() || !allowed {
            return SlotContent::Damaged(DamageKind::Name);
        }
        // Lower inode numbers are reserved for the file system, except the
        // root's.
        let exists = inode <= self.superblock.inodes
            && (inode == ROOT || inode >= self.superblock.first_inode);
        if !exists {
            return SlotContent::Damaged(DamageKind::Inode(inode));
        }
        let has_file_types = self.superblock.features.file_type();
        let kind = fields.u8(at.saturating_add(7));
        SlotContent::Entry(RawEntry {
            inode,
            kind: has_file_types.then(|| Kind::of_entry(kind)).flatten(),
            name,
        })
    }

    /// Returns the length of a record. With blocks of 64 KiB, lengths use a
    /// special encoding.
    fn record_length(&self, block: &[u8], at: usize) -> usize {
        let length = Fields(block).u16(at.saturating_add(4));
        if self.superblock.block_size < 1 << 16 {
            return length.into();
        }
        match length {
            0 | u16::MAX => 1 << 16,
            length => usize::from(length & !3) | (usize::from(length & 3) << 16),
        }
    }
}

/// Returns whether the checksum of a directory block matches. It is in the last
/// twelve bytes, in the form of a removed entry. In a block of the index these
/// bytes are stale; the index has its own checksum, which is not checked since
/// the index is not used.
pub(super) fn checksum_matches(block: &[u8], seed: u32, superblock: &Superblock) -> bool {
    if is_index(block, superblock) {
        return true;
    }
    let end = block.len().saturating_sub(12);
    let (entries, tail) = block.split_at_checked(end).unwrap_or_default();
    let fields = Fields(tail);
    let is_tail = fields.u32(0) == 0 && fields.u32(4) == 0xde00_000c;
    is_tail && crc32c(seed, entries) == fields.u32(8)
}

/// Returns whether a block belongs to the index. An index block looks like one
/// removed entry; in the first block of a directory, the index follows in the
/// record of `..`.
fn is_index(block: &[u8], superblock: &Superblock) -> bool {
    let parser = EntryParser {
        superblock,
        encrypted: false,
    };
    if Fields(block).u32(0) == 0 {
        return parser.record_length(block, 0) == block.len();
    }
    parser.record_length(block, 0) == DOT
        && parser.record_length(block, DOT) == block.len().saturating_sub(DOT)
}

/// Encodes an encrypted name in base64 for URLs. The end of a very long name is
/// replaced by a checksum, so that the result is a valid and distinct name.
pub(super) fn base64_name(name: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const MOST: usize = 189;
    const KEPT: usize = MOST - size_of::<u32>();
    let cut = name.get(..KEPT).filter(|_| name.len() > MOST);
    let cut = cut.map(|start| [start, &crc32c(START, name).to_le_bytes()].concat());
    let mut letters = Vec::new();
    for chunk in cut.as_deref().unwrap_or(name).chunks(3) {
        let fields = Fields(chunk);
        let bits = u32::from_be_bytes([0, fields.u8(0), fields.u8(1), fields.u8(2)]);
        for place in 0..=chunk.len() {
            let shift = 18_usize.saturating_sub(place.saturating_mul(6));
            let index = usize::try_from((bits >> shift) & 0x3f).unwrap_or(0);
            letters.push(LETTERS.get(index).copied().unwrap_or(b'_'));
        }
    }
    letters
}
