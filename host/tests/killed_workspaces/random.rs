use std::time::SystemTime;

/// Numbers that look random.
pub(crate) struct Random(u64);

/// Sets the numbers, to repeat a run.
pub(crate) const SEED: &str = "VMCELL_TEST_SEED";

impl Random {
    /// Others in each run, which are printed, unless somebody has chosen them.
    pub(crate) fn seeded() -> Self {
        let seed = std::env::var(SEED).map_or_else(
            |_| {
                SystemTime::UNIX_EPOCH
                    .elapsed()
                    .unwrap()
                    .subsec_nanos()
                    .into()
            },
            |text| text.parse().unwrap(),
        );
        println!("{SEED}={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    pub(crate) fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}
