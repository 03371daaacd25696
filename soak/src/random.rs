use std::time::Duration;

/// Choices that follow from a seed: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Makes choices of its own for a task, which those of other tasks do not change.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.number())
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Short times are as likely as long ones.
    pub(crate) fn time_below(&mut self, longest: Duration) -> Duration {
        let bits = u64::BITS - (longest.as_micros() as u64).leading_zeros();
        let bound = 1 << self.below(bits.into());
        Duration::from_micros(self.below(bound)).min(longest)
    }

    /// Sizes of all magnitudes.
    pub(crate) fn size_below(&mut self, most: usize) -> usize {
        let bits = usize::BITS - most.leading_zeros();
        let bound = 1 << self.below(u64::from(bits) + 1);
        (self.below(bound) as usize).min(most)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.number().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    pub(crate) fn name(&mut self) -> String {
        format!("{:08x}", self.number() as u32)
    }
}
