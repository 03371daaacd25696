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

/// How many words the Bloom filter may have. They are constants, because a look takes few
/// instructions then.
const SMALLEST: usize = 1 << 9;
const SMALL: usize = 1 << 12;
const MEDIUM: usize = 1 << 15;
const LARGE: usize = 1 << 18;
const LARGEST: usize = 1 << 21;

/// How many entries it has for each word, at most. With both bits of an entry, and those of
/// its neighbour, one look in 30,000 sees what is in no pattern.
const ENTRIES_PER_WORD: usize = 2;

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
        let fits = |words: &usize| words * ENTRIES_PER_WORD >= entries;
        let words = [SMALLEST, SMALL, MEDIUM, LARGE].into_iter().find(fits);
        let words = words.unwrap_or(LARGEST);
        let mut filter = Self {
            bits: Zeroizing::new(vec![0; words]),
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
            Width::Four => self.find_by::<4>(text, from),
            Width::Eight => self.find_by::<8>(text, from),
        }
    }

    fn find_by<const WIDTH: usize>(&self, text: &[u8], from: usize) -> Result<usize, usize> {
        match self.bits.len() {
            SMALLEST => self.find_in::<WIDTH, SMALLEST>(text, from),
            SMALL => self.find_in::<WIDTH, SMALL>(text, from),
            MEDIUM => self.find_in::<WIDTH, MEDIUM>(text, from),
            LARGE => self.find_in::<WIDTH, LARGE>(text, from),
            _ => self.find_in::<WIDTH, LARGEST>(text, from),
        }
    }

    fn find_in<const WIDTH: usize, const WORDS: usize>(
        &self,
        text: &[u8],
        from: usize,
    ) -> Result<usize, usize> {
        let Some(words) = self.bits.first_chunk::<WORDS>() else {
            return Ok(from);
        };
        let mut at = from;
        while let Some(seen) = text.get(at..).and_then(<[u8]>::first_chunk::<WIDTH>) {
            let hash = hash(seen);
            let first_bit = hash >> shift(WORDS);
            let word = words[(first_bit / 64) as usize % WORDS];
            if word >> (first_bit % 64) & 1 == 1
                && self.contains(hash)
                && self.is_next_to_pattern(text, at)
            {
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

    fn contains(&self, hash: u64) -> bool {
        let is_set = |bit: usize| self.bits[bit / 64] >> (bit % 64) & 1 == 1;
        is_set(self.first_bit(hash)) && is_set(self.second_bit(hash))
    }

    fn first_bit(&self, hash: u64) -> usize {
        (hash >> shift(self.bits.len())) as usize
    }

    fn second_bit(&self, hash: u64) -> usize {
        let mixed = hash.rotate_left(32).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed >> shift(self.bits.len())) as usize
    }
}

/// Returns how far a hash is shifted to be the number of a bit of so many words.
const fn shift(words: usize) -> u32 {
    u64::BITS - u64::BITS.ilog2() - words.ilog2()
}

/// Returns a number for the bytes that a look sees.
#[inline]
fn hash<const N: usize>(seen: &[u8; N]) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(seen);
    u64::from_le_bytes(word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
