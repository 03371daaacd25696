//! Numbers for people.

use std::time::Duration;

/// The middle of some times. Noise only adds, but not always to the same run.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The time that so many of a hundred are within.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(place).copied().unwrap_or_default()
}

/// Of rounds with our time and the baseline's, the one whose ratio is in the
/// middle. The machine's speed changes from one second to the next, so only
/// what was measured together can be compared.
pub fn middle_round(mut rounds: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    let ratio =
        |(ours, baseline): &(Duration, Duration)| ours.as_secs_f64() / baseline.as_secs_f64();
    rounds.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    rounds.get(rounds.len() / 2).copied().unwrap_or_default()
}

/// Prints one row: what was measured, against what, and whether that is what
/// was promised.
pub fn row(name: &str, ours: &str, baseline: &str, ratio: f64, bound: Bound) {
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

/// Prints a row about something that is true or not.
pub fn fact(name: &str, measured: &str, promised: &str, kept: bool) {
    let verdict = if kept { "kept" } else { "MISSED" };
    println!("| {name} | {measured} | | | {promised} | {verdict} |");
}

/// What a ratio is promised to be.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
    /// Nothing: the row explains another one.
    None,
}
