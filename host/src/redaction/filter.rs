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
        match self {
            Self::Four => text.first_chunk().map(hash::<4>),
            Self::Eight => text.first_chunk().map(hash::<8>),
        }
    }
}

/// The least size of the Bloom filter, and how many bits it has for each entry, as powers of
/// two. With both bits of an entry, and those of its neighbour, one look in 30,000 sees what is
/// in no pattern.
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
                let Some(hash) = width.hash(seen) else {
                    continue;
                };
                for bit in [filter.first_bit(hash), filter.second_bit(hash)] {
                    filter.bits[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        Some(filter)
    }

    /// Returns where a look from `from` on sees a part of a pattern. All patterns that begin
    /// there or later contain this place or a later one.
    ///
    /// # Errors
    /// Where the last look was, if none of them sees one. What begins before that and goes
    /// on after the text was broken into lines.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Result<usize, usize> {
        match self.width {
            Width::Four => self.find_by(text, from, hash::<4>),
            Width::Eight => self.find_by(text, from, hash::<8>),
        }
    }

    #[inline]
    fn find_by<const N: usize>(
        &self,
        text: &[u8],
        from: usize,
        hash: impl Fn(&[u8; N]) -> u64,
    ) -> Result<usize, usize> {
        let mut at = from;
        while let Some(seen) = text.get(at..).and_then(<[u8]>::first_chunk) {
            if self.contains(hash(seen)) && self.is_next_to_pattern(text, at) {
                return Ok(at);
            }
            at += self.distance;
        }
        Err(at)
    }

    /// Returns how many bytes of a pattern are together at least in every match.
    pub(super) fn least(&self) -> usize {
        self.distance + self.width.bytes() - 1
    }

    /// Returns whether the same is true of a look before or after: a match is longer than
    /// what one look sees.
    #[cold]
    fn is_next_to_pattern(&self, text: &[u8], at: usize) -> bool {
        let sees = |at: usize| {
            let hash = text.get(at..).and_then(|text| self.width.hash(text));
            hash.is_none_or(|hash| self.contains(hash))
        };
        self.distance == 1 || at.checked_sub(1).is_none_or(sees) || sees(at + 1)
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let is_set = |bit: usize| self.bits[bit / 64] >> (bit % 64) & 1 == 1;
        is_set(self.first_bit(hash)) && is_set(self.second_bit(hash))
    }

    #[inline]
    fn first_bit(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    fn second_bit(&self, hash: u64) -> usize {
        let mixed = hash.rotate_left(32).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed >> self.shift) as usize
    }
}

/// Returns a number for the bytes that a look sees.
#[inline]
fn hash<const N: usize>(seen: &[u8; N]) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(seen);
    u64::from_le_bytes(word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
