//! Decoding of numbers from bytes. Bytes beyond the end read as zero, like the
//! fields of an inode that an older kernel did not write.

/// The bytes of a structure, little-endian unless noted.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn u8(self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(super) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// Big-endian, as in the journal.
    pub(super) fn be16(self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub(super) fn be32(self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(super) fn be64(self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    pub(super) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.0
            .get(at..)
            .and_then(|rest| rest.first_chunk::<N>())
            .copied()
            .unwrap_or([0; N])
    }

    /// Returns `length` bytes, or `None` if they are not all there.
    pub(super) fn bytes(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(at..at.checked_add(length)?)
    }

    /// Returns text that ends at the first zero byte.
    pub(super) fn text(self, at: usize, most: usize) -> Vec<u8> {
        let bytes = self.bytes(at, most).unwrap_or_default();
        bytes
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .collect()
    }
}

/// Joins the upper and lower half of a number.
pub(super) fn join(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

pub(super) fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Converts a length. One that does not fit becomes `usize::MAX`.
pub(super) fn to_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
