//! Numbers out of bytes. What is not there reads as zero, as the fields of an
//! inode do that an older kernel wrote.

/// A structure of the image, little-endian unless a name says otherwise.
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

    /// The journal is big-endian.
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

    /// So many bytes, or none if they are not all there.
    pub(super) fn bytes(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(at..at.checked_add(length)?)
    }

    /// Text that ends at the first zero.
    pub(super) fn text(self, at: usize, most: usize) -> Vec<u8> {
        let bytes = self.bytes(at, most).unwrap_or_default();
        bytes
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .collect()
    }
}

/// A number of which the image has the lower and the upper half.
pub(super) fn join(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

pub(super) fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A length that is too large for memory stays too large.
pub(super) fn narrow(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
