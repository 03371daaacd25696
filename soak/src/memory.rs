//! The memory of the worker, which must not grow with the rounds.

use std::fs;

use crate::sys::return_freed_memory;

/// So many rounds say nothing yet.
const FEWEST_ROUNDS: usize = 80;

/// How much the median of the last quarter of the rounds may be above that of the second one.
const MAX_GROWTH: f64 = 1.25;
const MAX_GROWTH_KIB: u64 = 1024;

/// What the worker has used after each round.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog(Vec<u64>);

impl MemoryLog {
    /// Adds what it uses now, in KiB.
    pub(crate) fn add(&mut self) -> u64 {
        return_freed_memory();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let kib = number.unwrap_or(0);
        self.0.push(kib);
        kib
    }

    /// Returns the medians of the second and of the last quarter, if there were enough rounds.
    pub(crate) fn medians(&self) -> Option<(u64, u64)> {
        let quarter = self.0.len() / 4;
        let are_enough = self.0.len() >= FEWEST_ROUNDS;
        let last = self.0.len() - quarter;
        are_enough.then(|| {
            let second = median(&self.0[quarter..2 * quarter]);
            (second, median(&self.0[last..]))
        })
    }

    /// Returns what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some((first, last)) = self.medians() else {
            return Ok(());
        };
        let most = (first as f64 * MAX_GROWTH) as u64 + MAX_GROWTH_KIB;
        match last > most {
            true => Err(format!("memory has grown from {first} to {last} KiB")),
            false => Ok(()),
        }
    }
}

fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values[values.len() / 2]
}
