use super::{
    DamageKind, Inode,
    fields::{Fields, to_usize},
    inode::GOOD_OLD_INODE_SIZE,
};

pub(super) const MAGIC: u32 = 0xea02_0000;

/// Length of an entry without its name.
const ENTRY: usize = 16;

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
}

/// An attribute entry without its value.
pub(super) struct RawEntry<'a> {
    pub(super) prefix: u8,
    pub(super) name: &'a [u8],
    /// The inode that stores the value, or zero.
    pub(super) inode: u32,
    pub(super) size: u32,
    offset: u16,
}

impl<'a> AttributeArea<'a> {
    /// Returns the attribute area of an inode, or `None` if it has no
    /// attributes.
    pub(super) fn of_inode(bytes: &'a [u8], inode: &Inode) -> Option<Self> {
        let rest = bytes.get(GOOD_OLD_INODE_SIZE.saturating_add(inode.extra.into())..)?;
        (Fields(rest).u32(0) == MAGIC).then_some(Self {
            bytes: rest.get(size_of::<u32>()..)?,
            first: 0,
        })
    }

    pub(super) fn of_block(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            first: BLOCK_HEADER,
        }
    }

    /// Returns the entries. Ends after the first invalid one, since the start
    /// of the next one is then unknown.
    pub(super) fn entries(self) -> impl Iterator<Item = Result<RawEntry<'a>, DamageKind>> {
        let mut next = Some(self.first);
        std::iter::from_fn(move || {
            let at = next.take()?;
            let fields = Fields(self.bytes);
            // Four zero bytes, or the end of the area, mark the end of the
            // entries.
            if fields.u32(at) == 0 {
                return None;
            }
            let length = usize::from(fields.u8(at));
            let name = fields.bytes(at.saturating_add(ENTRY), length);
            let Some(name) = name else {
                return Some(Err(DamageKind::Size(fields.u8(at).into())));
            };
            next = at
                .checked_add(ENTRY)
                .and_then(|end| end.checked_add(length)?.checked_next_multiple_of(4));
            Some(Ok(RawEntry {
                prefix: fields.u8(at.saturating_add(1)),
                name,
                offset: fields.u16(at.saturating_add(2)),
                inode: fields.u32(at.saturating_add(4)),
                size: fields.u32(at.saturating_add(8)),
            }))
        })
    }

    /// Returns the value of an entry whose value is stored in the same area.
    pub(super) fn value(self, entry: &RawEntry<'_>) -> Option<&'a [u8]> {
        Fields(self.bytes).bytes(entry.offset.into(), to_usize(entry.size.into()))
    }
}
