//! Processes under load, compared with the same VM without load.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use vmcell::{Command, ExecEvent, Vm};
use vmcell_benches::{
    concurrent_streams::ConcurrentStreams,
    memory,
    summary::{Bound, fact, head, median, median_round, percentile, row},
};

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let vm = Vm::builder().image(&image).start().await?;
    head();
    if wanted("at_once") {
        at_once(&vm).await?;
    }
    if wanted("beside_a_flood") {
        beside_a_flood(&vm).await?;
    }
    if wanted("in_a_row") {
        in_a_row(&vm).await?;
    }
    if wanted("orphans") {
        orphans(&vm).await?;
    }
    if wanted("broken_links") {
        broken_links(&vm).await?;
    }
    if wanted("many_streams") {
        many_streams(&vm).await?;
    }
    vm.kill().await?;
    Ok(())
}

/// Runs a command that must print `expected`.
async fn run(vm: &Vm, line: &str, expected: &str) -> Result<()> {
    let output = vm.exec_command(Command::shell(line)).await?;
    ensure!(
        output.success() && output.stdout == expected.as_bytes(),
        "{line}: {output:?}"
    );
    Ok(())
}

async fn timed(work: impl Future<Output = Result<()>>) -> Result<Duration> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed())
}

/// Compares 64 commands at once with the same 64 one after the other.
async fn at_once(vm: &Vm) -> Result<()> {
    const COMMANDS: u32 = 64;
    let mut rounds = Vec::new();
    for _ in 0..21 {
        let in_a_row = timed(async {
            for number in 0..COMMANDS {
                run(vm, &format!("echo {number}"), &format!("{number}\n")).await?;
            }
            Ok(())
        });
        let in_a_row = in_a_row.await?;
        let at_once = timed(async {
            let mut tasks = tokio::task::JoinSet::new();
            for number in 0..COMMANDS {
                let vm = vm.clone();
                tasks.spawn(async move {
                    run(&vm, &format!("echo {number}"), &format!("{number}\n")).await
                });
            }
            while let Some(ran) = tasks.join_next().await {
                ran??;
            }
            Ok(())
        });
        // Throughput is the inverse of time.
        rounds.push((in_a_row, at_once.await?));
    }
    let (in_a_row, at_once) = median_round(rounds);
    let rate = |time: Duration| format!("{:.0}/s", f64::from(COMMANDS) / time.as_secs_f64());
    row(
        "64 commands at once, all correct",
        &rate(at_once),
        &format!("{} one after the other", rate(in_a_row)),
        in_a_row.as_secs_f64() / at_once.as_secs_f64(),
        Bound::AtLeast(1.0),
    );
    Ok(())
}

/// Compares the p99 of commands without and with 256 MiB on the same link.
async fn beside_a_flood(vm: &Vm) -> Result<()> {
    const SAMPLES: usize = 200;
    let sample = async || -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for _ in 0..SAMPLES {
            times.push(timed(run(vm, "exit 0", "")).await?);
        }
        Ok(times)
    };
    let idle = sample().await?;
    let flood = "dd if=/dev/zero bs=256k count=1024 status=none";
    let mut loaded = Vec::new();
    while loaded.len() < SAMPLES {
        let mut stream = vm.exec_stream(Command::from_argv(flood.split(' ')))?;
        let reading = async {
            let mut received = 0;
            while let Some(event) = stream.next().await? {
                if let ExecEvent::Stdout(bytes) = event {
                    received += bytes.len();
                }
            }
            ensure!(received == 256 << 20, "received {received} bytes");
            anyhow::Ok(())
        };
        let mut reading = std::pin::pin!(reading);
        loop {
            tokio::select! {
                biased;
                read = &mut reading => break read?,
                time = timed(run(vm, "exit 0", "")) => loaded.push(time?),
            }
        }
    }
    let (p99, idle_p99) = (percentile(&loaded, 99), percentile(&idle, 99));
    row(
        "p99 of exec beside a stream of 256 MiB",
        &format!("{:.1} ms (p50 {:.1})", ms(p99), ms(median(loaded))),
        &format!("{:.1} ms idle (p50 {:.1})", ms(idle_p99), ms(median(idle))),
        p99.as_secs_f64() / idle_p99.as_secs_f64(),
        Bound::AtMost(5.0),
    );
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The resources of the agent.
#[derive(Debug)]
struct AgentResources {
    resident_kib: u64,
    descriptors: u64,
    zombies: u64,
}

impl AgentResources {
    async fn of(vm: &Vm) -> Result<Self> {
        let script = "grep VmRSS /proc/1/status | tr -dc 0-9; echo; ls /proc/1/fd | wc -l; \
                      cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; true";
        let output = vm.exec_command(Command::shell(script)).await?;
        let text = output.stdout_text();
        let mut numbers = text.lines().map(str::parse);
        let mut next = || {
            numbers
                .next()
                .context("too few numbers")?
                .context("no number")
        };
        Ok(Self {
            resident_kib: next()?,
            descriptors: next()?,
            zombies: next()?,
        })
    }
}

/// Runs 10,000 commands, and checks for leaked resources.
async fn in_a_row(vm: &Vm) -> Result<()> {
    const COMMANDS: usize = 10_000;
    // The first commands let the agent's memory reach its steady size.
    for _ in 0..100 {
        run(vm, "exit 0", "").await?;
    }
    let (before, files_before) = (AgentResources::of(vm).await?, memory::descriptors()?);
    let time = timed(async {
        for _ in 0..COMMANDS {
            ensure!(vm.exec(["true"]).await?.success());
        }
        Ok(())
    });
    let time = time.await?;
    let (after, files_after) = (AgentResources::of(vm).await?, memory::descriptors()?);
    let grown = after.resident_kib.saturating_sub(before.resident_kib);
    fact(
        "10,000 commands in a row",
        &format!(
            "agent +{grown} KiB, {} -> {} descriptors, {} zombies; host {files_before} -> \
             {files_after} descriptors; {:.1} s",
            before.descriptors,
            after.descriptors,
            after.zombies,
            time.as_secs_f64()
        ),
        "at most 64 KiB, no new descriptor, no zombie",
        grown <= 64
            && after.descriptors <= before.descriptors
            && files_after <= files_before
            && after.zombies == 0,
    );
    Ok(())
}

/// Creates 10,000 orphans for PID 1 to reap, along with commands with other exit
/// codes.
async fn orphans(vm: &Vm) -> Result<()> {
    let script = "i=0; while [ $i -lt 10000 ]; do ( (exit 77) & ); i=$((i+1)); done; echo over";
    let making = vm.spawn(Command::shell(script)).await?;
    let mut mixed_up = 0;
    let mut checked = 0;
    let waiting = making.wait();
    let mut waiting = std::pin::pin!(waiting);
    loop {
        let code = u8::try_from(checked % 76)?;
        tokio::select! {
            biased;
            exit = &mut waiting => {
                ensure!(exit?.success());
                break;
            }
            output = vm.exec_command(Command::shell(format!("exit {code}"))) => {
                mixed_up += usize::from(output?.code() != Some(code));
                checked += 1;
            }
        }
    }
    let ended = Instant::now();
    while AgentResources::of(vm).await?.zombies > 0 {}
    let reaped = ended.elapsed();
    making.forget().await?;
    fact(
        "10,000 orphans",
        &format!(
            "none left {:.0} ms after the last one; {checked} commands beside them, {mixed_up} \
             exit codes mixed up",
            ms(reaped)
        ),
        "within a second, none mixed up",
        reaped < Duration::from_secs(1) && mixed_up == 0,
    );
    Ok(())
}

/// Receives 64 MB of numbers over a link that breaks 200 times.
async fn broken_links(vm: &Vm) -> Result<()> {
    const LAST: u32 = 8_000_000;
    const DROPS: usize = 200;
    let mut expected = Vec::with_capacity(64 << 20);
    for number in 1..=LAST {
        expected.extend_from_slice(number.to_string().as_bytes());
        expected.push(b'\n');
    }
    let command = Command::from_argv(["seq".to_owned(), "1".to_owned(), LAST.to_string()]);
    let mut stream = vm.exec_stream(command)?;
    let (mut received, mut drops) = (0, 0);
    let begun = Instant::now();
    while let Some(event) = stream.next().await? {
        match event {
            ExecEvent::Stdout(bytes) => {
                let place = received..received + bytes.len();
                ensure!(
                    expected.get(place.clone()) == Some(&bytes[..]),
                    "not the bytes of {place:?}"
                );
                received = place.end;
                if drops < DROPS && received > expected.len() / (DROPS + 1) * (drops + 1) {
                    drops += 1;
                    vm.reconnect()?;
                }
            }
            ExecEvent::Started { .. } | ExecEvent::Exited(_) => {}
            other => bail!("{other:?}"),
        }
    }
    fact(
        "64 MB of numbers over a link that breaks",
        &format!(
            "{drops} breaks, {received} of {} bytes, each once; {:.1} s",
            expected.len(),
            begun.elapsed().as_secs_f64()
        ),
        "200 breaks, no byte lost, none twice",
        drops == DROPS && received == expected.len(),
    );
    Ok(())
}

/// Receives 16 streams of 64 MiB at once.
async fn many_streams(vm: &Vm) -> Result<()> {
    const STREAMS: usize = 16;
    const SIZE: usize = 64 << 20;
    let make = "dd if=/dev/urandom of=/dev/shm/data bs=1M count=80 status=none; echo made";
    run(vm, make, "made\n").await?;
    let concurrent = ConcurrentStreams::run(vm, (STREAMS, SIZE), hash_output).await?;
    fact(
        "16 streams of 64 MiB at once",
        &format!(
            "{} of {STREAMS} hashes equal; host grew by {} MiB at most; {:.0} MB/s",
            concurrent.equal,
            concurrent.grown_mib,
            concurrent.rate / 1e6
        ),
        "all equal; at most 16 windows of 1 MiB, twice over",
        concurrent.equal == STREAMS && concurrent.grown_mib <= 32,
    );
    Ok(())
}

async fn hash_output(vm: Vm, line: String) -> Result<Sha256> {
    let mut stream = vm.exec_stream(Command::shell(line))?;
    let mut hasher = Sha256::new();
    while let Some(event) = stream.next().await? {
        if let ExecEvent::Stdout(bytes) = event {
            hasher.update(&bytes);
        }
    }
    Ok(hasher)
}
