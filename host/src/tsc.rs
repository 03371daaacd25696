//! The frequency of this machine's time stamp counter (TSC).
//!
//! An emulated guest sees the host's counter. Its kernel would calibrate the
//! counter against emulated timers, which takes long and fails on a busy host,
//! so the host passes the frequency.

use std::{
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use crate::sys::read_tsc;

/// Returns the frequency in kHz, or `None` if the counter is not invariant.
///
/// The first call takes [`MEASURING_TIME`].
pub(crate) fn frequency_khz() -> Option<u64> {
    static RATE: OnceLock<Option<u64>> = OnceLock::new();
    *RATE.get_or_init(|| {
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        is_invariant(&processor).then(measure)
    })
}

/// How long the counter is measured. Both clocks are read within half a
/// microsecond, so the error is at most 1 in 10,000.
const MEASURING_TIME: Duration = Duration::from_millis(5);

/// How often both clocks are read. This thread may lose its processor between the
/// two, but hardly each time.
const READINGS: usize = 8;

fn measure() -> u64 {
    let (first_ticks, first_time) = read_clocks();
    thread::sleep(MEASURING_TIME);
    let (ticks, time) = read_clocks();
    let (ticks, time) = (ticks.wrapping_sub(first_ticks), time - first_time);
    let rate = u128::from(ticks) * 1_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Reads both clocks at the same time, as nearly as it can be done.
fn read_clocks() -> (u64, Instant) {
    let read = |_| {
        let (before, time, after) = (read_tsc(), Instant::now(), read_tsc());
        let gap = after.wrapping_sub(before);
        (gap, before.wrapping_add(gap / 2), time)
    };
    let first = read(0);
    let nearest = (1..READINGS).map(read).chain([first]);
    let (_, ticks, time) = nearest.min_by_key(|(gap, ..)| *gap).unwrap_or(first);
    (ticks, time)
}

fn is_invariant(processor: &str) -> bool {
    let flags: Vec<_> = processor
        .lines()
        .find(|line| line.starts_with("flags"))
        .map(|line| line.split_whitespace().collect())
        .unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|flag| flags.contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_agree() {
        let (first, second) = (measure(), measure());
        assert!(
            first.abs_diff(second) * 1000 < first,
            "{first} and {second}"
        );
    }

    #[test]
    fn a_counter_that_stops_or_changes_is_not_used() {
        assert!(is_invariant("flags : tsc constant_tsc nonstop_tsc"));
        assert!(!is_invariant("flags : tsc constant_tsc"));
        assert!(!is_invariant(""));
    }
}
