//! VMs whose VMM is confined, compared with VMs whose VMM is not.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::time::{Duration, Instant};

use anyhow::Result;
use vmcell::{Confinement, Vm, VmBuilder, confinement::examine};
use vmcell_benches::{
    exec_time::exec_time,
    summary::{Bound, head, median_round, row},
};

const BOOTS: usize = 11;
const STARTS: usize = 41;
const ROUNDS: usize = 9;
const EXECS: usize = 50;
const FLOOD_MIB: u32 = 64;

#[tokio::main]
async fn main() -> Result<()> {
    head();
    starts("boot, `start` to `start` returned", BOOTS, false).await?;
    starts("start from a template", STARTS, true).await?;
    running().await?;
    layers()
}

fn builder(confinement: Confinement) -> Result<VmBuilder> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let builder = Vm::builder().image(image).memory_mib(256).unlisted();
    Ok(builder.backend("qemu").confinement(confinement))
}

async fn starts(name: &str, count: usize, warm: bool) -> Result<()> {
    // Makes the template, and what the first start of a program makes.
    for confinement in [Confinement::BestEffort, Confinement::Off] {
        start(confinement, warm).await?;
    }
    let mut rounds = Vec::new();
    for _ in 0..count {
        let confined = start(Confinement::BestEffort, warm).await?;
        rounds.push((confined, start(Confinement::Off, warm).await?));
    }
    compare(name, rounds);
    Ok(())
}

async fn start(confinement: Confinement, warm: bool) -> Result<Duration> {
    let builder = builder(confinement)?.warm(warm);
    let begun = Instant::now();
    let vm = builder.start().await?;
    let time = begun.elapsed();
    vm.kill().await?;
    Ok(time)
}

/// Measures VMs that run side by side.
async fn running() -> Result<()> {
    let confined = builder(Confinement::BestEffort)?.start().await?;
    let free = builder(Confinement::Off)?.start().await?;
    let (mut execs, mut floods) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        execs.push((
            exec_time(&confined, EXECS).await?,
            exec_time(&free, EXECS).await?,
        ));
        floods.push((flood(&confined).await?, flood(&free).await?));
    }
    compare("p50 of `exec` of /bin/true", execs);
    compare(&format!("{FLOOD_MIB} MiB of output"), floods);
    confined.kill().await?;
    free.kill().await?;
    Ok(())
}

async fn flood(vm: &Vm) -> Result<Duration> {
    let blocks = format!("count={FLOOD_MIB}");
    let command = ["dd", "if=/dev/zero", "bs=1M", &blocks];
    let begun = Instant::now();
    let mut stream = vm.exec_stream(vmcell::Command::from_argv(command))?;
    while stream.next().await?.is_some() {}
    Ok(begun.elapsed())
}

fn compare(name: &str, rounds: Vec<(Duration, Duration)>) {
    let (confined, free) = median_round(rounds);
    row(
        name,
        &format!("{:.2} ms", confined.as_secs_f64() * 1e3),
        &format!("{:.2} ms (not confined)", free.as_secs_f64() * 1e3),
        confined.as_secs_f64() / free.as_secs_f64(),
        Bound::AtMost(1.05),
    );
}

/// Prints what the confined ones were confined by.
fn layers() -> Result<()> {
    let layers = examine()?;
    let active = layers.iter().filter(|status| status.is_active);
    let names: Vec<_> = active.map(|status| status.layer.name()).collect();
    println!("\nlayers: {}", names.join(", "));
    Ok(())
}
