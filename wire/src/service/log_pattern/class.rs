use core::{fmt, ops::RangeInclusive};

/// A set of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteClass([u8; 32]);

impl ByteClass {
    /// Adds all bytes of a range.
    pub fn add(&mut self, bytes: RangeInclusive<u8>) {
        for byte in bytes {
            if let Some(bits) = self.0.get_mut(usize::from(byte >> 3)) {
                *bits |= bit(byte);
            }
        }
    }

    /// Returns whether a byte belongs to the class.
    pub fn contains(&self, byte: u8) -> bool {
        let bits = self.0.get(usize::from(byte >> 3));
        bits.is_some_and(|bits| bits & bit(byte) != 0)
    }

    pub(super) fn from_bits(bits: [u8; 32]) -> Self {
        Self(bits)
    }

    pub(super) fn to_bits(self) -> [u8; 32] {
        self.0
    }
}

fn bit(byte: u8) -> u8 {
    1u8.wrapping_shl(u32::from(byte & 7))
}

impl fmt::Debug for ByteClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = (0..=u8::MAX).filter(|byte| self.contains(*byte));
        f.debug_set().entries(bytes).finish()
    }
}
