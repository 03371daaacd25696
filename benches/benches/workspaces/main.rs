//! Workspaces, compared with VMs of the library without a workspace, measured alternately
//! in one run.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

mod create;
mod disk_sizes;
mod idle;
mod keeper;
mod list;
mod start;
mod store;

use std::time::{Duration, Instant};

use anyhow::Result;
use vmcell_benches::summary::{Bound, head, median_round, row};

use store::Store;

#[tokio::main]
async fn main() -> Result<()> {
    if store::is_keeper() {
        return store::keep().await;
    }
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let store = Store::new()?;
    head();
    if wanted("create") {
        create::create(&store, &image).await?;
    }
    if wanted("start") {
        start::start(&store, &image).await?;
    }
    if wanted("resume") {
        start::resume(&store, &image).await?;
    }
    if wanted("keeper_commands") {
        keeper::commands(&store, &image).await?;
    }
    if wanted("keeper_transfers") {
        keeper::transfers(&store, &image).await?;
    }
    if wanted("idle") {
        idle::idle(&store, &image).await?;
    }
    if wanted("list") {
        list::list(&image).await?;
    }
    if wanted("disk_sizes") {
        disk_sizes::disk_sizes(&store).await?;
    }
    Ok(())
}

async fn timed<T>(work: impl Future<Output = Result<T, vmcell::Error>>) -> Result<(Duration, T)> {
    let begun = Instant::now();
    let result = work.await?;
    Ok((begun.elapsed(), result))
}

/// Prints a row of the rounds' times.
fn compare(name: &str, rounds: Vec<(Duration, Duration)>, baseline: &str, bound: Bound) {
    let (ours, theirs) = median_round(rounds);
    row(
        name,
        &milliseconds(ours),
        &format!("{} ({baseline})", milliseconds(theirs)),
        ours.as_secs_f64() / theirs.as_secs_f64(),
        bound,
    );
}

fn milliseconds(time: Duration) -> String {
    let time = time.as_secs_f64() * 1e3;
    match time < 100.0 {
        true => format!("{time:.1} ms"),
        false => format!("{time:.0} ms"),
    }
}
