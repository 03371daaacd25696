//! The backend `process`, compared with child processes of this program.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use vmcell::{
    Vm,
    backend::{Backend as _, HostProcess},
};
use vmcell_benches::summary::{Bound, fact, head, median, median_round, percentile, row};

const STARTS: usize = 50;
const ROUNDS: usize = 9;
const EXECS: usize = 200;

/// The promised time from a start to the result of the first command.
const PROMISED: Duration = Duration::from_millis(30);

fn main() -> Result<()> {
    let health = HostProcess::new().health();
    if !health.is_available {
        println!("skipped: {}", health.reason);
        return Ok(());
    }
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    head();
    starts(&runtime, &image)?;
    execs(&runtime, &image)
}

async fn start(image: &Path) -> Result<Vm> {
    let builder = Vm::builder().image(image).backend("process");
    Ok(builder.allow_host_compat().start().await?)
}

fn starts(runtime: &Runtime, image: &Path) -> Result<()> {
    // The first start unpacks the image.
    runtime
        .block_on(async { start(image).await?.stop().await.map_err(Into::into) as Result<()> })?;
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (started, ended) = runtime.block_on(async {
            let begun = Instant::now();
            let vm = start(image).await?;
            ensure!(vm.exec(["/bin/true"]).await?.success());
            let started = begun.elapsed();
            let begun = Instant::now();
            vm.stop().await?;
            Ok((started, begun.elapsed()))
        })?;
        starts.push(started);
        ends.push(ended);
    }
    let shown = |times: &[Duration]| {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (half, most) = (percentile(times, 50), percentile(times, 95));
        format!("{:.1} ms, 95 of 100 within {:.1} ms", ms(half), ms(most))
    };
    fact(
        "start to the result of the first exec",
        &shown(&starts),
        "<= 30 ms",
        median(starts) <= PROMISED,
    );
    println!("| stop, until nothing is left | {} | | | | |", shown(&ends));
    Ok(())
}

fn execs(runtime: &Runtime, image: &Path) -> Result<()> {
    let vm = runtime.block_on(start(image))?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..EXECS {
            let begun = Instant::now();
            ensure!(runtime.block_on(vm.exec(["/bin/true"]))?.success());
            ours.push(begun.elapsed());
            let begun = Instant::now();
            let mut command = std::process::Command::new("/bin/busybox");
            ensure!(
                command
                    .arg("true")
                    .stdin(Stdio::null())
                    .output()?
                    .status
                    .success()
            );
            plain.push(begun.elapsed());
        }
        rounds.push((median(ours), median(plain)));
    }
    let (ours, plain) = median_round(rounds);
    row(
        "p50 of exec of /bin/true",
        &format!("{} us", ours.as_micros()),
        &format!("{} us (a child of this program)", plain.as_micros()),
        ours.as_secs_f64() / plain.as_secs_f64(),
        Bound::None,
    );
    runtime.block_on(vm.kill())?;
    Ok(())
}
