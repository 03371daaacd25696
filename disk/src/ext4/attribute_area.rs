use super::{
    DamageKind, Inode,
    fields::{Fields, to_usize},
    inode::GOOD_OLD_INODE_SIZE,
    superblock::Superblock,
};

pub(super) const MAGIC: u32 = 0xea02_0000;

/// Length of an entry without its name.
const ENTRY: usize = 16;

/// Length of the zero bytes that end the entries.
const END_MARK: usize = 4;

/// Length of the header of an attribute block. In an inode there is only the
/// magic number.
const BLOCK_HEADER: usize = 32;

/// An area with extended attributes: entries grow from the start, values from
/// the end.
#[derive(Clone, Copy)]
pub(super) struct AttributeArea<'a> {
    /// Value offsets are relative to the start of this slice.
    bytes: &'a [u8],
    first: usize,
    /// The end of the entries, before which no value may start.
    end: usize,
}

/// An attribute entry without its value.
pub(super) struct RawEntry<'a> {
    pub(super) prefix: u8,
    pub(super) name: &'a [u8],
    /// The inode that stores the value, or zero.
    pub(super) inode: u32,
    pub(super) size: u32,
    offset: u16,
    /// Where the next entry starts.
    next: usize,
}

impl<'a> AttributeArea<'a> {
    /// Returns the attribute area of an inode, or `None` if it has no
    /// attributes.
    pub(super) fn of_inode(bytes: &'a [u8], inode: &Inode) -> Option<Self> {
        let rest = bytes.get(GOOD_OLD_INODE_SIZE.saturating_add(inode.extra.into())..)?;
        if Fields(rest).u32(0) != MAGIC {
            return None;
        }
        Some(Self::new(rest.get(size_of::<u32>()..)?, 0))
    }

    pub(super) fn of_block(bytes: &'a [u8]) -> Self {
        Self::new(bytes, BLOCK_HEADER)
    }

    fn new(bytes: &'a [u8], first: usize) -> Self {
        let mut area = Self {
            bytes,
            first,
            end: first,
        };
        let names = area.entries().flatten().map(|entry| entry.next);
        let last = names.last().unwrap_or(first);
        area.end = last.saturating_add(END_MARK);
        area
    }

    /// Checks all entries, and that their values are in the area, behind the
    /// entries, or in an inode that can exist.
    pub(super) fn check(self, superblock: &Superblock) -> Result<(), DamageKind> {
        for entry in self.entries() {
            let entry = entry?;
            if entry.inode == 0 && self.value(&entry).is_none() {
                return Err(DamageKind::Size(entry.size.into()));
            }
            let inodes = superblock.first_inode..=superblock.inodes;
            if entry.inode != 0 && !inodes.contains(&entry.inode) {
                return Err(DamageKind::Inode(entry.inode));
            }
        }
        Ok(())
    }

    /// Returns the entries. Ends after the first invalid one, since the start
    /// of the next one is then unknown.
    pub(super) fn entries(self) -> impl Iterator<Item = Result<RawEntry<'a>, DamageKind>> {
        let mut next = Some(self.first);
        std::iter::from_fn(move || {
            let at = next.take()?;
            let fields = Fields(self.bytes);
            // Four zero bytes mark the end of the entries.
            match fields.bytes(at, END_MARK) {
                None => return Some(Err(DamageKind::Missing)),
                Some([0, 0, 0, 0]) => return None,
                Some(_) => {}
            }
            let length = usize::from(fields.u8(at));
            let name = fields.bytes(at.saturating_add(ENTRY), length);
            let Some(name) = name else {
                return Some(Err(DamageKind::Size(fields.u8(at).into())));
            };
            if name.contains(&0) {
                return Some(Err(DamageKind::Name));
            }
            let end = at.saturating_add(ENTRY).saturating_add(length);
            let following = end.checked_next_multiple_of(4).unwrap_or(usize::MAX);
            next = Some(following);
            Some(Ok(RawEntry {
                next: following,
                prefix: fields.u8(at.saturating_add(1)),
                name,
                offset: fields.u16(at.saturating_add(2)),
                inode: fields.u32(at.saturating_add(4)),
                size: fields.u32(at.saturating_add(8)),
            }))
        })
    }

    /// Returns the value of an entry whose value is stored in the same area, or
    /// `None` if it would overlap the entries or the end of the area. An empty
    /// value has no place.
    pub(super) fn value(self, entry: &RawEntry<'_>) -> Option<&'a [u8]> {
        let (offset, length) = (usize::from(entry.offset), to_usize(entry.size.into()));
        if length == 0 {
            return Some(&[]);
        }
        // Each value takes a multiple of four bytes.
        let padded = length.checked_next_multiple_of(4)?;
        let room = Fields(self.bytes).bytes(offset, padded)?;
        room.get(..length).filter(|_| offset >= self.end)
    }
}
