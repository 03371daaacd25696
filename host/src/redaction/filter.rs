use zeroize::Zeroizing;

/// Finds out fast where no pattern is.
///
/// It looks at a few bytes at every so many, which may be anywhere in a pattern or are not.
/// The distance is such that no pattern fits between two looks:
///
/// ```text
///  text     ....ab..........cd..........ef..........gh....
///               └ look      └ look      └ look      └ look
///  pattern          [xxxxxxxxxxxxx]       contains the bytes of one look at least
/// ```
pub(super) struct Filter {
    /// A Bloom filter of all that a look may see of a pattern. It is zeroed, too, because it
    /// tells which values are no secret.
    bits: Zeroizing<Vec<u64>>,
    /// How far a hash is shifted to be the number of a bit.
    shift: u32,
    width: Width,
    distance: usize,
}

/// How many bytes a look sees.
#[derive(Clone, Copy)]
enum Width {
    Four,
    Eight,
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// Returns a number for the bytes at the beginning of a text, or `None` if it is shorter.
    fn hash(self, text: &[u8]) -> Option<u64> {
        let seen = match self {
            Self::Four => text
                .first_chunk()
                .map(|it| u64::from(u32::from_le_bytes(*it))),
            Self::Eight => text.first_chunk().map(|it| u64::from_le_bytes(*it)),
        };
        seen.map(|seen| seen.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// The least size of the Bloom filter, and how many bits it has for each entry, as powers of
/// two. With both bits of an entry, one look in 250 finds what is in no pattern.
const MIN_BITS: u32 = 13;
const BITS_PER_ENTRY: u32 = 5;

/// With a width of eight, looks should be this far apart at least.
const MIN_DISTANCE: usize = 4;

impl Filter {
    /// Returns a filter for patterns of which `least` bytes at a time are together in every
    /// match, or `None` if that is too few for one.
    pub(super) fn new<'a>(
        patterns: impl Iterator<Item = &'a [u8]> + Clone,
        least: usize,
    ) -> Option<Self> {
        let width = match least {
            0..4 => return None,
            _ if least < Width::Eight.bytes() + MIN_DISTANCE => Width::Four,
            _ => Width::Eight,
        };
        let entries: usize = patterns.clone().map(<[u8]>::len).sum();
        let bits = entries.max(1).next_power_of_two().ilog2() + BITS_PER_ENTRY;
        let bits = bits.max(MIN_BITS);
        let mut filter = Self {
            bits: Zeroizing::new(vec![0; 1 << (bits - 6)]),
            shift: u64::BITS - bits,
            width,
            distance: least - width.bytes() + 1,
        };
        for pattern in patterns {
            for seen in pattern.windows(width.bytes()) {
                let bits = width.hash(seen).map(|hash| filter.bits_of(hash));
                for bit in bits.into_iter().flatten() {
                    filter.bits[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        Some(filter)
    }

    /// Returns where a look from `from` on sees a part of a pattern. All patterns that begin
    /// there or later contain this place or a later one.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(hash) = self.width.hash(text.get(at..)?) {
            let is_set = |bit: usize| self.bits[bit / 64] >> (bit % 64) & 1 == 1;
            if self.bits_of(hash).into_iter().all(is_set) {
                return Some(at);
            }
            at += self.distance;
        }
        None
    }

    /// Returns the two bits of a hash.
    fn bits_of(&self, hash: u64) -> [usize; 2] {
        let second = hash.rotate_left(32).wrapping_mul(0xff51_afd7_ed55_8ccd);
        [hash, second].map(|hash| (hash >> self.shift) as usize)
    }
}
