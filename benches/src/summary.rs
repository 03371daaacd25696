//! Statistics, and the rows of the result tables.

use std::time::Duration;

/// Returns the median.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Returns the percentile `percent` of the times.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(place).copied().unwrap_or_default()
}

/// Returns the round with the median ratio of our time to the baseline's. The
/// machine's speed changes from one second to the next, so only times of the same
/// round can be compared.
pub fn median_round(mut rounds: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    let ratio =
        |(ours, baseline): &(Duration, Duration)| ours.as_secs_f64() / baseline.as_secs_f64();
    rounds.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    rounds.get(rounds.len() / 2).copied().unwrap_or_default()
}

/// Prints the head of a table, which is the same for all benchmarks, so that
/// `scripts/bench.sh` can put them together.
pub fn head() {
    println!("| what | vmcell | baseline | ratio | promised | |");
    println!("|---|---|---|---|---|---|");
}

/// Prints one row: the measurement, its baseline, their ratio, and whether it is
/// within the promised bound.
pub fn row(name: &str, ours: &str, baseline: &str, ratio: f64, bound: Bound) {
    let [name, ours, baseline] = [name, ours, baseline].map(cell);
    let (sign, limit, kept) = match bound {
        Bound::AtMost(limit) => ("<=", limit, ratio <= limit),
        Bound::AtLeast(limit) => (">=", limit, ratio >= limit),
        Bound::None => {
            println!("| {name} | {ours} | {baseline} | {ratio:.2} | | |");
            return;
        }
    };
    let verdict = if kept { "kept" } else { "MISSED" };
    println!("| {name} | {ours} | {baseline} | {ratio:.2} | {sign} {limit} | {verdict} |");
}

/// Prints a row for a promise that is not a ratio.
pub fn fact(name: &str, measured: &str, promised: &str, kept: bool) {
    let [name, measured, promised] = [name, measured, promised].map(cell);
    let verdict = if kept { "kept" } else { "MISSED" };
    println!("| {name} | {measured} | | | {promised} | {verdict} |");
}

/// Escapes what would end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The promised bound of a ratio.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
    /// No bound: the row explains another one.
    None,
}
