//! vmcell against plain QEMU, side by side in one run.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use vmcell::{Command, ExecEvent, Vm};
use vmcell_benches::{
    baseline::{Baseline, FLOOD},
    summary::{Bound, median, row},
};

const BOOTS: usize = 11;
const ROUND_TRIPS: usize = 2000;
const EXECS: usize = 500;
const FLOODS: usize = 5;

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = tokio::runtime::Runtime::new()?;
    let acceleration = vmcell::AccelerationChoice::detect();
    println!(
        "acceleration: {} ({})\n",
        acceleration.acceleration, acceleration.reason
    );
    println!("| what | vmcell | baseline | ratio | promised | |");
    println!("|---|---|---|---|---|---|");
    boot(&runtime, &image)?;
    exec(&runtime, &image)?;
    output(&runtime, &image)
}

async fn start(image: &Path) -> Result<Vm> {
    Ok(Vm::builder().image(image).start().await?)
}

fn boot(runtime: &tokio::runtime::Runtime, image: &Path) -> Result<()> {
    let mut ours = Vec::new();
    let mut baseline = Vec::new();
    for _ in 0..BOOTS {
        baseline.push(Baseline::boot_time(image)?);
        ours.push(runtime.block_on(async {
            let begun = Instant::now();
            let vm = start(image).await?;
            ensure!(vm.exec(["true"]).await?.success());
            let time = begun.elapsed();
            vm.kill().await;
            Ok(time)
        })?);
    }
    let (ours, baseline) = (median(ours), median(baseline));
    row(
        "start to the result of the first exec",
        &format!("{} ms", ours.as_millis()),
        &format!(
            "{} ms (plain QEMU to a line from init)",
            baseline.as_millis()
        ),
        ours.as_secs_f64() / baseline.as_secs_f64(),
        Bound::AtMost(1.3),
    );
    Ok(())
}

fn exec(runtime: &tokio::runtime::Runtime, image: &Path) -> Result<()> {
    let round_trip = median(Baseline::round_trips(image, ROUND_TRIPS)?);
    let spawn = Baseline::spawn_time(image)?;
    let times: Result<Vec<Duration>> = runtime.block_on(async {
        let vm = start(image).await?;
        let mut times = Vec::new();
        for _ in 0..EXECS {
            let begun = Instant::now();
            ensure!(vm.exec(["/bin/true"]).await?.success());
            times.push(begun.elapsed());
        }
        vm.kill().await;
        Ok(times)
    });
    let ours = median(times?);
    let baseline = round_trip + spawn;
    row(
        "p50 of exec of /bin/true",
        &format!("{} us", ours.as_micros()),
        &format!(
            "{} us ({} us round trip + {} us fork, exec, wait)",
            baseline.as_micros(),
            round_trip.as_micros(),
            spawn.as_micros()
        ),
        ours.as_secs_f64() / baseline.as_secs_f64(),
        Bound::AtMost(1.3),
    );
    Ok(())
}

fn output(runtime: &tokio::runtime::Runtime, image: &Path) -> Result<()> {
    let mut ours = Vec::new();
    let mut baseline = Vec::new();
    for _ in 0..FLOODS {
        baseline.push(Baseline::flood_time(image)?);
        ours.push(runtime.block_on(async {
            let vm = start(image).await?;
            let time = read_flood(&vm).await?;
            vm.kill().await;
            anyhow::Ok(time)
        })?);
    }
    let (ours, baseline) = (median(ours), median(baseline));
    let rate = |time: Duration| FLOOD as f64 / 1e6 / time.as_secs_f64();
    row(
        "256 MiB of output through exec_stream",
        &format!("{:.0} MB/s", rate(ours)),
        &format!("{:.0} MB/s (the raw link)", rate(baseline)),
        rate(ours) / rate(baseline),
        Bound::AtLeast(0.8),
    );
    Ok(())
}

async fn read_flood(vm: &Vm) -> Result<Duration> {
    let command = Command::new("head").args(["-c", "256M", "/dev/zero"]);
    let mut events = vm.exec_stream(command)?;
    let mut received = 0;
    let mut begun = Instant::now();
    while let Some(event) = events.next().await? {
        match event {
            ExecEvent::Started { .. } => begun = Instant::now(),
            ExecEvent::Stdout(bytes) => received += bytes.len(),
            ExecEvent::Exited(_) => {}
            other => bail!("{other:?}"),
        }
    }
    ensure!(received == FLOOD, "{received} bytes came");
    Ok(begun.elapsed())
}
