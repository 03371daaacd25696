//! The backend `process` against what a program could do itself, side by side in
//! one run.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use tokio::runtime::Runtime;
use vmcell::{
    Command, ExecEvent, Vm,
    backend::{Backend as _, HostProcess},
};
use vmcell_benches::summary::{Bound, fact, median, middle_round, percentile, row};

const STARTS: usize = 50;
const ROUNDS: usize = 9;
const EXECS: usize = 200;

/// How much goes through the link.
const FLOOD: usize = 256 * 1024 * 1024;

/// How long a start may take until the result of the first command is there.
const PROMISED: Duration = Duration::from_millis(30);

fn main() -> Result<()> {
    let health = HostProcess::new().health();
    if !health.is_available {
        println!("skipped: {}", health.reason);
        return Ok(());
    }
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    println!("| what | vmcell | baseline | ratio | promised | |");
    println!("|---|---|---|---|---|---|");
    starts(&runtime, &image)?;
    execs(&runtime, &image)?;
    output(&runtime, &image)
}

async fn start(image: &Path) -> Result<Vm> {
    let builder = Vm::builder().image(image).backend("process");
    Ok(builder.allow_host_compat().start().await?)
}

fn starts(runtime: &Runtime, image: &Path) -> Result<()> {
    // The image is unpacked once.
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
    let (ours, plain) = middle_round(rounds);
    row(
        "p50 of exec of /bin/true",
        &format!("{} us", ours.as_micros()),
        &format!("{} us (a child of this program)", plain.as_micros()),
        ours.as_secs_f64() / plain.as_secs_f64(),
        Bound::None,
    );
    runtime.block_on(vm.kill());
    Ok(())
}

fn output(runtime: &Runtime, image: &Path) -> Result<()> {
    let vm = runtime.block_on(start(image))?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((runtime.block_on(flood(&vm))?, raw_socket()?));
    }
    let (ours, raw) = middle_round(rounds);
    let rate = |time: Duration| FLOOD as f64 / 1e6 / time.as_secs_f64();
    row(
        "256 MiB of output through exec_stream",
        &format!("{:.0} MB/s", rate(ours)),
        &format!("{:.0} MB/s (a socket pair between two threads)", rate(raw)),
        rate(ours) / rate(raw),
        Bound::None,
    );
    runtime.block_on(vm.kill());
    Ok(())
}

async fn flood(vm: &Vm) -> Result<Duration> {
    let source = ["dd", "if=/dev/zero", "bs=256k", "count=1024", "status=none"];
    let mut events = vm.exec_stream(Command::from_argv(source))?;
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

/// What the link could carry, with nothing else to do.
fn raw_socket() -> Result<Duration> {
    let (mut sender, mut receiver) = UnixStream::pair()?;
    let begun = Instant::now();
    let sending = thread::spawn(move || -> std::io::Result<()> {
        let piece = vec![0; 64 * 1024];
        for _ in 0..FLOOD / piece.len() {
            sender.write_all(&piece)?;
        }
        Ok(())
    });
    let mut buffer = vec![0; 64 * 1024];
    let mut received = 0;
    while received < FLOOD {
        received += receiver.read(&mut buffer)?;
    }
    let time = begun.elapsed();
    match sending.join() {
        Ok(sent) => sent?,
        Err(_) => bail!("the sender failed"),
    }
    Ok(time)
}
