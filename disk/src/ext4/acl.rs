//! Access control lists. On the disk they are shorter than what the kernel
//! shows, since most entries need no id: see acl(5) and `linux/posix_acl_xattr.h`.

use super::fields::Fields;

const ON_DISK: u32 = 1;
const SHOWN: u32 = 2;

/// The tags of entries for a named user and a named group.
const NAMED: [u16; 2] = [0x2, 0x8];

const NO_ID: u32 = u32::MAX;

/// What `getxattr` would tell. None if it is not a list.
pub(super) fn from_disk(bytes: &[u8]) -> Option<Vec<u8>> {
    if Fields(bytes).u32(0) != ON_DISK {
        return None;
    }
    let mut shown = SHOWN.to_le_bytes().to_vec();
    let mut rest = bytes.get(4..)?;
    while let Some((entry, others)) = rest.split_at_checked(4) {
        rest = others;
        shown.extend_from_slice(entry);
        let id = if NAMED.contains(&Fields(entry).u16(0)) {
            let (id, others) = rest.split_first_chunk()?;
            rest = others;
            u32::from_le_bytes(*id)
        } else {
            NO_ID
        };
        shown.extend_from_slice(&id.to_le_bytes());
    }
    rest.is_empty().then_some(shown)
}
