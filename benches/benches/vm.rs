//! vmcell compared with plain QEMU, measured alternately in one run.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use tokio::runtime::Runtime;
use vmcell::{Command, ExecEvent, Vm};
use vmcell_benches::{
    baseline::{Baseline, FLOOD_BYTES, Machine, guest_program},
    exec_time::exec_time,
    summary::{Bound, head, median, median_round, row},
};

const BOOTS: usize = 11;
const ROUNDS: usize = 9;
const ROUND_TRIPS: usize = 500;
const EXECS: usize = 100;

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    let acceleration = vmcell::AccelerationChoice::detect();
    println!(
        "acceleration: {} ({})\n",
        acceleration.acceleration, acceleration.reason
    );
    head();
    let machine = runtime.block_on(async { Machine::of(&start(&image).await?, &image) })?;
    boot(&runtime, &image, &machine)?;
    exec(&runtime, &image, &machine)?;
    output(&runtime, &image, &machine)
}

async fn start(image: &Path) -> Result<Vm> {
    Ok(Vm::builder().image(image).start().await?)
}

fn boot(runtime: &Runtime, image: &Path, machine: &Machine) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..BOOTS {
        let baseline = Baseline::boot_time(machine)?;
        let ours = runtime.block_on(async {
            let begun = Instant::now();
            let vm = start(image).await?;
            ensure!(vm.exec(["/bin/true"]).await?.success());
            let time = begun.elapsed();
            vm.kill().await?;
            Ok(time)
        })?;
        rounds.push((ours, baseline));
    }
    let (ours, baseline) = median_round(rounds);
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

fn exec(runtime: &Runtime, image: &Path, machine: &Machine) -> Result<()> {
    let round_trip = median(Baseline::round_trips(machine, ROUND_TRIPS)?);
    // In the same guest, in short rounds.
    let rounds = runtime.block_on(async {
        let vm = start(image).await?;
        let install = ["sh", "-c", "cat > /spawn && chmod +x /spawn"];
        let program = guest_program()?;
        vm.exec_with(install, |command| command.stdin(program))
            .await?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push((
                exec_time(&vm, EXECS).await?,
                round_trip + spawn_time(&vm).await?,
            ));
        }
        vm.kill().await?;
        anyhow::Ok(rounds)
    })?;
    let (ours, baseline) = median_round(rounds);
    row(
        "p50 of exec of /bin/true",
        &format!("{} us", ours.as_micros()),
        &format!(
            "{} us ({} us round trip + {} us fork, exec, wait)",
            baseline.as_micros(),
            round_trip.as_micros(),
            (baseline - round_trip).as_micros()
        ),
        ours.as_secs_f64() / baseline.as_secs_f64(),
        Bound::AtMost(1.3),
    );
    Ok(())
}

/// Returns the median time of fork, exec and wait of `/bin/true`, measured in the
/// guest.
async fn spawn_time(vm: &Vm) -> Result<Duration> {
    let output = vm
        .exec_with(["/spawn"], |command| command.env("vmcell_bench", "spawn"))
        .await?;
    ensure!(output.success(), "{output:?}");
    Ok(Duration::from_nanos(output.stdout_text().trim().parse()?))
}

fn output(runtime: &Runtime, image: &Path, machine: &Machine) -> Result<()> {
    let mut rounds = Vec::new();
    let (mut pipes, mut relays, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    let mut splices = Vec::new();
    for _ in 0..ROUNDS {
        let baseline = Baseline::flood_time(machine)?;
        let relay = Baseline::pipe_time(machine)?;
        let (ours, pipe) = runtime.block_on(flood_times(image))?;
        rounds.push((ours, baseline));
        pipes.push((ours, pipe));
        relays.push((ours, relay));
        limits.push((relay, baseline));
        splices.push((Baseline::splice_time(machine)?, baseline));
    }
    flood_row(
        "256 MiB of output through exec_stream",
        "the raw link",
        rounds,
        Bound::AtLeast(0.8),
    );
    flood_row(
        "the same",
        "through a pipe from one process to another inside the guest",
        pipes,
        Bound::None,
    );
    flood_row("the same", RELAY, relays, Bound::None);
    flood_row("that relay", "the raw link", limits, Bound::None);
    let spliced = "one that splices, and so could send nothing again";
    flood_row(spliced, "the raw link", splices, Bound::None);
    Ok(())
}

/// The name of the minimal relay between a process and the host.
const RELAY: &str = "a program that only passes on what it reads from a pipe";

fn flood_row(name: &str, against: &str, rounds: Vec<(Duration, Duration)>, bound: Bound) {
    let (ours, baseline) = median_round(rounds);
    let rate = |time: Duration| FLOOD_BYTES as f64 / 1e6 / time.as_secs_f64();
    row(
        name,
        &format!("{:.0} MB/s", rate(ours)),
        &format!("{:.0} MB/s ({against})", rate(baseline)),
        rate(ours) / rate(baseline),
        bound,
    );
}

/// Returns how long [`FLOOD_BYTES`] bytes take to the host, and from one process to
/// another inside the guest.
async fn flood_times(image: &Path) -> Result<(Duration, Duration)> {
    let vm = start(image).await?;
    // Busybox's head copies byte by byte; its dd does not.
    let source = "dd if=/dev/zero bs=256k count=1024 status=none";
    let mut events = vm.exec_stream(Command::from_argv(source.split(' ')))?;
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
    let time = begun.elapsed();
    ensure!(received == FLOOD_BYTES, "received {received} bytes");
    let pipe = format!("{source} | dd of=/dev/null bs=256k status=none");
    let output = vm.exec(["sh", "-c", &pipe]).await?;
    ensure!(output.success(), "{output:?}");
    let pipe = output.exit.map(|exit| exit.wall_time).unwrap_or_default();
    vm.kill().await?;
    Ok((time, pipe))
}
