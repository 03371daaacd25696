use super::{
    DamageKind, Inode,
    fields::{Fields, narrow},
    inode::SMALL,
};

pub(super) const MAGIC: u32 = 0xea02_0000;

/// How long an entry is without its name.
const ENTRY: usize = 16;

/// How long the header of a block is. In an inode there is only the magic
/// number.
const BLOCK_HEADER: usize = 32;

/// Where extended attributes are: entries from the start, values from the end.
#[derive(Clone, Copy)]
pub(super) struct Area<'a> {
    /// Values are counted from the start of these.
    bytes: &'a [u8],
    first: usize,
}

/// One attribute, without its value.
pub(super) struct RawEntry<'a> {
    pub(super) prefix: u8,
    pub(super) name: &'a [u8],
    /// The inode that has the value, if not zero.
    pub(super) inode: u32,
    pub(super) size: u32,
    offset: u16,
}

impl<'a> Area<'a> {
    /// The rest of an inode. None if it has no attributes.
    pub(super) fn of_inode(bytes: &'a [u8], inode: &Inode) -> Option<Self> {
        let rest = bytes.get(SMALL.saturating_add(inode.extra.into())..)?;
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

    /// All entries. It ends after the first that is wrong, since nothing tells
    /// where the next one starts.
    pub(super) fn entries(self) -> impl Iterator<Item = Result<RawEntry<'a>, DamageKind>> {
        let mut next = Some(self.first);
        std::iter::from_fn(move || {
            let at = next.take()?;
            let fields = Fields(self.bytes);
            // The last entry is followed by four zeros, or by the end.
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

    /// The value of an entry that is not in an inode of its own.
    pub(super) fn value(self, entry: &RawEntry<'_>) -> Option<&'a [u8]> {
        Fields(self.bytes).bytes(entry.offset.into(), narrow(entry.size.into()))
    }
}
