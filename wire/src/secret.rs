use alloc::vec::Vec;

/// An environment variable whose value is a secret, as an entry of
/// [`Start::env`](crate::Start::env): `=`, the sixteen hexadecimal digits of a seed, and
/// `NAME=value`, each byte changed by a sequence that the seed begins.
///
/// This is not encryption, because the seed is part of it. It keeps the value itself out
/// of every buffer on its way, most of which nobody can erase. The agent restores it in
/// the memory from which the program is executed, and erases that.
///
/// ```
/// use vmcell_wire::SecretVariable;
///
/// let entry = SecretVariable::mask(b"TOKEN=hunter2", 7);
/// assert!(!entry.windows(7).any(|part| part == b"hunter2"));
/// let variable = SecretVariable::parse(&entry).ok_or("not masked")?;
/// assert!(variable.bytes().eq(*b"TOKEN=hunter2"));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretVariable<'a> {
    seed: u64,
    masked: &'a [u8],
}

/// The length of a seed in hexadecimal digits.
const SEED_DIGITS: usize = 16;

impl<'a> SecretVariable<'a> {
    /// Masks a variable `NAME=value`, which contains no zero byte. The result contains
    /// none either. Equal seeds make equal entries.
    #[must_use]
    pub fn mask(variable: &[u8], seed: u64) -> Vec<u8> {
        let header = [b'='].into_iter().chain(hex_digits(seed));
        let masked = variable.iter().zip(Sequence(seed));
        let masked = masked.map(|(byte, number)| rotate(*byte, number));
        // In one piece, because a growing list would leave copies behind.
        let mut entry = Vec::with_capacity(variable.len().saturating_add(SEED_DIGITS + 1));
        entry.extend(header.chain(masked));
        entry
    }

    /// Reads an entry of an environment; `None` if it is an ordinary variable.
    #[must_use]
    pub fn parse(entry: &'a [u8]) -> Option<Self> {
        let rest = entry.strip_prefix(b"=")?;
        let (seed, masked) = rest.split_first_chunk::<SEED_DIGITS>()?;
        let is_hex = seed.iter().all(u8::is_ascii_hexdigit);
        let seed = core::str::from_utf8(seed).ok().filter(|_| is_hex)?;
        let seed = u64::from_str_radix(seed, 16).ok()?;
        Some(Self { seed, masked })
    }

    /// Returns the length of `NAME=value`.
    #[must_use]
    pub const fn byte_len(self) -> usize {
        self.masked.len()
    }

    /// Returns the bytes of `NAME=value`. None of them is zero.
    pub fn bytes(self) -> impl Iterator<Item = u8> + 'a {
        let numbers = Sequence(self.seed);
        let masked = self.masked.iter().zip(numbers);
        masked.map(|(byte, number)| rotate(*byte, NONZERO.wrapping_sub(number)))
    }
}

/// How many values a byte has that is not zero.
const NONZERO: u8 = u8::MAX;

/// Adds a number below [`NONZERO`] to a byte, within the values that are not zero.
fn rotate(byte: u8, number: u8) -> u8 {
    let sum = u16::from(byte.saturating_sub(1)).saturating_add(number.into());
    let rotated = sum.checked_rem(NONZERO.into()).unwrap_or_default();
    u8::try_from(rotated).unwrap_or_default().saturating_add(1)
}

fn hex_digits(number: u64) -> impl Iterator<Item = u8> {
    let bytes = number.to_be_bytes().into_iter();
    let halves = bytes.flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(|half| match half {
        0..=9 => b'0'.saturating_add(half),
        _ => (b'a' - 10).saturating_add(half),
    })
}

/// Numbers below [`NONZERO`], from the generator `SplitMix64`.
struct Sequence(u64);

impl Iterator for Sequence {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        u8::try_from(mixed.checked_rem(NONZERO.into())?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_restored_and_none_becomes_zero() {
        let all: Vec<u8> = (1..=u8::MAX).collect();
        for seed in (0..300).chain([u64::MAX, u64::MAX - 1]) {
            let entry = SecretVariable::mask(&all, seed);
            assert!(!entry.contains(&0));
            let variable = SecretVariable::parse(&entry).unwrap();
            assert!(variable.bytes().eq(all.iter().copied()));
            assert_eq!(variable.byte_len(), all.len());
        }
    }

    #[test]
    fn ordinary_variables_are_not_masked() {
        for entry in [
            &b"TOKEN=value"[..],
            b"",
            b"=",
            b"=0123456789abcde",
            b"=0123456789abcdeg",
            b"=+123456789abcdef",
        ] {
            assert_eq!(SecretVariable::parse(entry), None);
        }
        assert!(SecretVariable::parse(b"=0123456789abcdef").is_some());
    }
}
