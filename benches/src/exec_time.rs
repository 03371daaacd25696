//! How long a command takes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use vmcell::Vm;

use crate::summary::median;

/// Returns the median time of so many runs of `/bin/true`, one after the other.
pub async fn exec_time(vm: &Vm, count: usize) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        ensure!(vm.exec(["/bin/true"]).await?.success());
        times.push(begun.elapsed());
    }
    Ok(median(times))
}
