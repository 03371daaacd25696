//! Converts access control lists from their form on disk. That is shorter than
//! the one the kernel returns, since most entries need no id: see acl(5) and
//! `linux/posix_acl_xattr.h`.

use super::fields::Fields;

const DISK_VERSION: u32 = 1;
const XATTR_VERSION: u32 = 2;

/// Tags of entries for a named user and a named group, which have an id.
const NAMED_TAGS: [u16; 2] = [0x2, 0x8];

const NO_ID: u32 = u32::MAX;

/// Returns the value that `getxattr` returns, or `None` if the list is invalid.
pub(super) fn from_disk(bytes: &[u8]) -> Option<Vec<u8>> {
    if Fields(bytes).u32(0) != DISK_VERSION {
        return None;
    }
    let mut value = XATTR_VERSION.to_le_bytes().to_vec();
    let mut rest = bytes.get(4..)?;
    while let Some((entry, others)) = rest.split_at_checked(4) {
        rest = others;
        value.extend_from_slice(entry);
        let id = if NAMED_TAGS.contains(&Fields(entry).u16(0)) {
            let (id, others) = rest.split_first_chunk()?;
            rest = others;
            u32::from_le_bytes(*id)
        } else {
            NO_ID
        };
        value.extend_from_slice(&id.to_le_bytes());
    }
    rest.is_empty().then_some(value)
}
