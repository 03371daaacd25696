//! Terminals: the time from a key to the screen, and many terminals at once.
//!
//! Prints a table; the figures of one run are in `benches/README.md`. The benchmark
//! `screen` measures the screen itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use vmcell::{
    Command, Vm, VmBuilder,
    backend::{Backend as _, HostProcess},
    terminal::{Terminal, TerminalOptions, Unread},
};
use vmcell_benches::{
    baseline::{Baseline, Machine, guest_program},
    concurrent_streams::ConcurrentStreams,
    socket_pair,
    summary::{Bound, fact, head, median, median_round, row},
};

const ROUNDS: usize = 9;
const ROUND_TRIPS: usize = 500;
const KEYS: usize = 200;

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    head();
    let builder = Vm::builder().image(&image);
    let machine = runtime.block_on(async {
        let vm = builder.clone().start().await?;
        Machine::of(&vm, &image)
    })?;
    let round_trip = median(Baseline::round_trips(&machine, ROUND_TRIPS)?);
    let relay = median(Baseline::keys(&machine, ROUND_TRIPS)?);
    let (ours, baseline) = echo(&runtime, "a key to the screen", &builder, round_trip)?;
    for (name, time, against, other) in [
        ("the same", ours, "a relay and nothing else", relay),
        ("that relay", relay, "the first baseline", baseline),
    ] {
        row(
            name,
            &format!("{} us", time.as_micros()),
            &format!("{} us ({against})", other.as_micros()),
            time.as_secs_f64() / other.as_secs_f64(),
            Bound::None,
        );
    }
    if HostProcess::new().health().is_available {
        let round_trip = median(socket_pair::round_trips(ROUND_TRIPS)?);
        let builder = builder.clone().backend("process").allow_host_compat();
        echo(&runtime, "the same on `process`", &builder, round_trip)?;
    }
    runtime.block_on(async {
        let vm = builder.start().await?;
        many(&vm).await?;
        vm.kill().await?;
        Ok(())
    })
}

/// Returns the time of a key and that of its baseline.
fn echo(
    runtime: &Runtime,
    name: &str,
    builder: &VmBuilder,
    round_trip: Duration,
) -> Result<(Duration, Duration)> {
    // In the same guest, in short rounds.
    let rounds = runtime.block_on(async {
        let vm = builder.clone().start().await?;
        vm.files().write("/pty", guest_program()?).await?;
        ensure!(vm.exec(["chmod", "+x", "/pty"]).await?.success());
        // The kernel echoes every key, and no program reads it, as in the baseline.
        let command = Command::shell("echo ready; exec sleep 100000");
        let terminal = vm
            .terminals()
            .open(TerminalOptions::command(command))
            .await?;
        let ready = terminal.expect("ready")?.await?;
        ensure!(ready.found.is_some(), "{ready:?}");
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            // In a task, as in real programs: otherwise each key would have to wake
            // the thread of `block_on`.
            let keys = tokio::spawn(keys(terminal.clone()));
            rounds.push((keys.await??, round_trip + pty_echo(&vm).await?));
        }
        vm.kill().await?;
        anyhow::Ok(rounds)
    })?;
    let (ours, baseline) = median_round(rounds);
    row(
        &format!("p50 of {name}"),
        &format!("{} us", ours.as_micros()),
        &format!(
            "{} us ({} us round trip + {} us echo of a PTY there)",
            baseline.as_micros(),
            round_trip.as_micros(),
            (baseline - round_trip).as_micros()
        ),
        ours.as_secs_f64() / baseline.as_secs_f64(),
        Bound::AtMost(1.5),
    );
    Ok((ours, baseline))
}

/// Returns the median time from writing a key until it is on the screen.
async fn keys(terminal: Terminal) -> Result<Duration> {
    let input = terminal.input();
    let mut follow = terminal.follow();
    follow.next().await.context("the terminal ended")?;
    let mut times = Vec::new();
    for _ in 0..KEYS {
        let begun = Instant::now();
        ensure!(input.write("x").await, "the terminal ended");
        // The screen is updated before followers receive the bytes.
        let bytes = follow.next().await.context("the terminal ended")?;
        times.push(begun.elapsed());
        ensure!(&bytes[..] == b"x", "{bytes:?}");
    }
    Ok(median(times))
}

/// Returns the median time of a PTY's echo, measured in the guest.
async fn pty_echo(vm: &Vm) -> Result<Duration> {
    let output = vm
        .exec_with(["/pty"], |command| command.env("vmcell_bench", "pty"))
        .await?;
    ensure!(output.success(), "{output:?}");
    Ok(Duration::from_nanos(output.stdout_text().trim().parse()?))
}

/// Runs 64 terminals that print 16 MiB each at once.
async fn many(vm: &Vm) -> Result<()> {
    const TERMINALS: usize = 64;
    const SIZE: usize = 16 << 20;
    let make = "seq 1 3000000 > /dev/shm/data";
    ensure!(vm.exec_command(Command::shell(make)).await?.success());
    let concurrent = ConcurrentStreams::run(vm, (TERMINALS, SIZE), hash_output).await?;
    fact(
        "64 terminals, 16 MiB each at once",
        &format!(
            "{} of {TERMINALS} hashes equal; host grew by {} MiB at most; {:.1} MB/s",
            concurrent.equal,
            concurrent.grown_mib,
            concurrent.rate / 1e6
        ),
        "all equal; at most 8 MiB a terminal",
        concurrent.equal == TERMINALS && concurrent.grown_mib <= 8 * TERMINALS,
    );
    Ok(())
}

/// Hashes the output of a terminal that drops nothing.
async fn hash_output(vm: Vm, line: String) -> Result<Sha256> {
    let command = Command::shell(format!("stty raw; exec {line}"));
    let options = TerminalOptions::command(command).unread(Unread::Kept);
    let terminal = vm.terminals().open(options).await?;
    let mut follow = terminal.follow();
    let mut hasher = Sha256::new();
    while let Some(bytes) = follow.next().await {
        hasher.update(&bytes);
    }
    let exit = terminal.wait().await?;
    ensure!(exit.success(), "{exit:?}");
    Ok(hasher)
}
