//! The UUID of a file system.

use std::fmt;

use crate::Digest;

/// The UUID of a file system, as `blkid` and `/dev/disk/by-uuid` show it.
///
/// ```
/// use vmcell_rootfs::Uuid;
///
/// assert_eq!(Uuid([0xab; 16]).to_string(), "abababab-abab-abab-abab-abababababab");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Returns a UUID of version 8 (RFC 9562: "custom") with the first bits of a digest.
    pub(crate) fn from_digest(digest: &Digest) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.0[..16]);
        bytes[6] = (bytes[6] & 0x0f) | 0x80;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
