//! The rounds, and the checks after each.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use rustix::process::{Signal, set_parent_process_death_signal};
use vmcell::Template;

use crate::{
    arguments::{Arguments, Kind},
    leftovers::{self, Baseline},
    memory::MemoryLog,
    round::Round,
    scenario::{self, Scenario},
    setup::Setup,
};

/// Runs rounds until the time is over, the user interrupts, or too many have failed. Returns
/// whether all was right.
pub(crate) async fn work(arguments: &Arguments) -> Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let setup = Setup::new(arguments)?;
    let seed = arguments.seed.context("no seed is set")?;
    let mut report = Report::default();
    // What is made once and kept.
    if setup.kind == Kind::Qemu {
        scenario::prepare_template(&setup)
            .await?
            .start()
            .await?
            .kill()
            .await?;
    }
    setup.vm("first").start().await?.kill().await?;
    leftovers::settle().await;
    let mut baseline = Baseline::now(&setup);
    let started_at = Instant::now();
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    for number in arguments.round.unwrap_or(0).. {
        let round = Round::choose(seed, number, &setup);
        println!("{} {round}", elapsed(started_at));
        report.count(&round);
        let outcome = round.run(&setup).await;
        let mut failures = outcome.failures;
        let left = baseline.wait_until_gone(&setup).await;
        if !left.is_empty() {
            failures.extend(left.into_iter().map(|what| format!("left: {what}")));
            // Reported once.
            baseline = Baseline::now(&setup);
        }
        let kib = report.memory.add();
        println!("  {:.1} s, {kib} KiB", outcome.time.as_secs_f64());
        for failure in &failures {
            println!("  FAILED: {failure}");
            println!(
                "  again: make soak BACKENDS={} SEED={seed} ROUND={number}",
                setup.kind
            );
        }
        report.failures += failures.len();
        let is_interrupted = interrupted.as_mut().now_or_never().is_some();
        let is_over = started_at.elapsed() > arguments.time() || arguments.round.is_some();
        if is_over || is_interrupted {
            break;
        }
    }
    if setup.kind == Kind::Qemu {
        Template::remove(&setup.prefix()).await?;
    }
    report.print(started_at.elapsed());
    Ok(report.is_good())
}

fn elapsed(since: Instant) -> String {
    let seconds = since.elapsed().as_secs();
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[derive(Debug, Default)]
struct Report {
    rounds: u64,
    scenarios: BTreeMap<Scenario, u64>,
    failures: usize,
    memory: MemoryLog,
}

impl Report {
    fn count(&mut self, round: &Round) {
        self.rounds += 1;
        for scenario in round.scenarios() {
            *self.scenarios.entry(scenario).or_default() += 1;
        }
    }

    fn is_good(&self) -> bool {
        self.failures == 0 && self.memory.check().is_ok()
    }

    fn print(&self, time: Duration) {
        println!(
            "{} rounds in {} s: {:?}",
            self.rounds,
            time.as_secs(),
            self.scenarios
        );
        if let Some((first, last)) = self.memory.medians() {
            println!(
                "memory: {first} KiB in the second quarter of the rounds, {last} KiB in the last one"
            );
        }
        if let Err(reason) = self.memory.check() {
            println!("FAILED: {reason}");
        }
        println!("{} failures", self.failures);
    }
}
