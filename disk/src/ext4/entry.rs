use std::ops::Range;

use super::{
    DamageKind, Kind,
    checksum::{START, crc32c},
    fields::Fields,
    inode::ROOT,
    superblock::Superblock,
};

/// A name in a directory, and what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// The name: neither empty nor `.` nor `..`, and without `/` and zeros. All
    /// other bytes may be in it. An encrypted name is shown in letters and
    /// digits.
    pub name: Vec<u8>,
    /// The number of its inode.
    pub inode: u32,
    /// What the directory says that it is, if it says anything. The inode knows
    /// better.
    pub kind: Option<Kind>,
}

/// How long an entry is without its name.
const HEADER: usize = 8;

/// How long the entry `.` is.
const DOT: usize = 12;

/// What stands at one place of a directory block.
#[derive(Debug)]
pub(super) struct Slot {
    /// Where the next one starts.
    pub(super) next: usize,
    pub(super) found: WalkEntry,
}

#[derive(Debug)]
pub(super) enum WalkEntry {
    /// A name that was removed, `.` or `..`, an index, a checksum.
    Nothing,
    Name(RawEntry),
    Bad(DamageKind),
}

#[derive(Debug)]
pub(super) struct RawEntry {
    pub(super) inode: u32,
    pub(super) kind: Option<Kind>,
    /// Where in the block the name is.
    pub(super) name: Range<usize>,
}

/// What is known about a directory when its entries are read.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) superblock: &'a Superblock,
    /// Names may then have any bytes.
    pub(super) encrypted: bool,
}

impl Rules<'_> {
    /// Reads the entry at one place of a block. An error without a next place
    /// means that nothing more can be found in the block.
    pub(super) fn slot(&self, block: &[u8], at: usize) -> Result<Slot, DamageKind> {
        let length = self.record_length(block, at);
        let rest = block.len().saturating_sub(at);
        let name_length = usize::from(Fields(block).u8(at.saturating_add(6)));
        let fits = length.is_multiple_of(4)
            && length >= HEADER.saturating_add(name_length)
            && length <= rest;
        if rest < HEADER || !fits {
            return Err(DamageKind::Size(super::fields::wide(length)));
        }
        Ok(Slot {
            next: at.saturating_add(length),
            found: self.found(block, at),
        })
    }

    /// The same for an entry whose length is wrong: the next one mostly starts
    /// where its name ends.
    pub(super) fn slot_by_name(&self, block: &[u8], at: usize) -> Option<Slot> {
        let name_length = usize::from(Fields(block).u8(at.checked_add(6)?));
        let next = at
            .checked_add(HEADER)?
            .checked_add(name_length)?
            .checked_next_multiple_of(4)?;
        let found = self.found(block, at);
        let plausible = next <= block.len() && matches!(found, WalkEntry::Name(_));
        plausible.then_some(Slot { next, found })
    }

    fn found(&self, block: &[u8], at: usize) -> WalkEntry {
        let fields = Fields(block);
        let inode = fields.u32(at);
        if inode == 0 {
            return WalkEntry::Nothing;
        }
        let start = at.saturating_add(HEADER);
        let name = start..start.saturating_add(fields.u8(at.saturating_add(6)).into());
        let bytes = block.get(name.clone()).unwrap_or_default();
        if matches!(bytes, b"." | b"..") {
            return WalkEntry::Nothing;
        }
        let allowed = self.encrypted || !bytes.iter().any(|byte| matches!(byte, 0 | b'/'));
        if bytes.is_empty() || !allowed {
            return WalkEntry::Bad(DamageKind::Name);
        }
        // The inodes before the first are the file system's own.
        let exists = inode <= self.superblock.inodes
            && (inode == ROOT || inode >= self.superblock.first_inode);
        if !exists {
            return WalkEntry::Bad(DamageKind::Number(inode));
        }
        let told = self.superblock.features.file_type();
        let kind = fields.u8(at.saturating_add(7));
        WalkEntry::Name(RawEntry {
            inode,
            kind: told.then(|| Kind::of_entry(kind)).flatten(),
            name,
        })
    }

    /// Blocks of 64 KiB have lengths that do not fit in their field.
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

/// Whether a block has its checksum. The last twelve bytes look like a removed
/// entry, and are that. In a block of the index they are left from other days;
/// its own sum is not looked at, since the index is not used.
pub(super) fn sum_matches(block: &[u8], seed: u32, superblock: &Superblock) -> bool {
    if is_index(block, superblock) {
        return true;
    }
    let end = block.len().saturating_sub(12);
    let (entries, tail) = block.split_at_checked(end).unwrap_or_default();
    let fields = Fields(tail);
    let is_tail = fields.u32(0) == 0 && fields.u32(4) == 0xde00_000c;
    is_tail && crc32c(seed, entries) == fields.u32(8)
}

/// An index looks like one removed entry. In the first block of the directory
/// it is in the room of `..`.
fn is_index(block: &[u8], superblock: &Superblock) -> bool {
    let rules = Rules {
        superblock,
        encrypted: false,
    };
    if Fields(block).u32(0) == 0 {
        return rules.record_length(block, 0) == block.len();
    }
    rules.record_length(block, 0) == DOT
        && rules.record_length(block, DOT) == block.len().saturating_sub(DOT)
}

/// A name that is not text, in letters, digits, `-` and `_`, as base64 does it
/// for addresses. Of very long ones the end is a sum, so that the result is a
/// name too, and another one for each.
pub(super) fn encoded(name: &[u8]) -> Vec<u8> {
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
