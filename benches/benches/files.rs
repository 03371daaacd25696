//! File transfers, compared with the raw link and with programs in the guest.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    fs,
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use vmcell::{
    Command, Vm,
    files::{Files, ManifestOptions, ReadOptions, WriteOptions},
};
use vmcell_benches::{
    baseline::{Baseline, FLOOD_BYTES, Machine, guest_program},
    memory,
    summary::{Bound, fact, head, median, median_round, row},
};
use vmcell_rootfs::Size;

const GIB: u64 = 1 << 30;
const SMALL_FILES: usize = 20_000;

/// The path of the baselines' program in the guest.
const PROGRAM: &str = "/bench";

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let image = vmcell_rootfs::recipe::base()
        .size(Size::Exact(4 << 30))
        .cached()?
        .path;
    let vm = Vm::builder().image(&image).start().await?;
    let program = WriteOptions::new().mode(0o755);
    vm.files()
        .write_with(PROGRAM, guest_program()?, program)
        .await?;
    head();
    if wanted("large_file") {
        large_file(&vm, &image).await?;
    }
    if wanted("small_files") {
        small_files(&vm).await?;
    }
    if wanted("slow_disk_sync") {
        during_sync(&vm).await?;
    }
    if wanted("slow_disk_removal") {
        during_removal(&vm).await?;
    }
    vm.kill().await?;
    Ok(())
}

async fn timed<T>(work: impl Future<Output = Result<T>>) -> Result<(Duration, T)> {
    let begun = Instant::now();
    let result = work.await?;
    Ok((begun.elapsed(), result))
}

/// Runs a line in the guest's shell, and returns how long it took in the guest.
async fn shell(vm: &Vm, line: &str) -> Result<Duration> {
    let command = Command::shell(line).timeout(Duration::from_secs(600));
    let output = vm.exec_command(command).await?;
    ensure!(output.success(), "{line}: {output:?}");
    Ok(output.exit.map(|exit| exit.wall_time).unwrap_or_default())
}

/// One file of 1 GiB, in each direction.
async fn large_file(vm: &Vm, image: &Path) -> Result<()> {
    let machine = Machine::of(vm, image)?;
    let files = vm.files().at("/workspace");
    let before = memory::resident()?;
    let mut peak = before;
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    let (mut relays_in, mut relays_out) = (Vec::new(), Vec::new());
    let piece = bytes::Bytes::from(vec![7u8; 256 * 1024]);
    for _ in 0..3 {
        let machine = &machine;
        let scale = |time: Duration| time.mul_f64(GIB as f64 / FLOOD_BYTES as f64);
        let [raw_in, raw_out, relay_in, relay_out] = tokio::task::block_in_place(|| {
            anyhow::Ok([
                scale(Baseline::drain_time(machine)?),
                scale(Baseline::flood_time(machine)?),
                scale(Baseline::file_in_time(machine)?),
                scale(Baseline::file_out_time(machine)?),
            ])
        })?;
        relays_in.push((relay_in, raw_in));
        relays_out.push((relay_out, raw_out));
        let (write, ()) = timed(async {
            let options = WriteOptions::new().size(GIB);
            let mut writer = files.writer("large", options).await?;
            for _ in 0..GIB / piece.len() as u64 {
                writer.write(piece.clone()).await?;
            }
            writer.finish().await?;
            Ok(())
        })
        .await?;
        peak = peak.max(memory::resident()?);
        writes.push((write, raw_in));
        let (read, count) = timed(async {
            let mut reader = files.reader("large", ReadOptions::new()).await?;
            let mut count = 0;
            while let Some(bytes) = reader.next().await? {
                count += bytes.len() as u64;
            }
            Ok(count)
        })
        .await?;
        ensure!(count == GIB, "received {count} bytes");
        peak = peak.max(memory::resident()?);
        reads.push((read, raw_out));
        files.remove("large").await?;
    }
    let enough = Bound::AtLeast(0.8);
    for (name, rounds, bound) in [
        ("one file of 1 GiB, into the guest", writes, enough),
        ("a relay that does nothing else", relays_in, Bound::None),
        ("one file of 1 GiB, out of the guest", reads, enough),
        ("a relay that does nothing else", relays_out, Bound::None),
    ] {
        let (time, raw) = median_round(rounds);
        let rate = |time: Duration| GIB as f64 / 1e6 / time.as_secs_f64();
        row(
            name,
            &format!("{:.0} MB/s", rate(time)),
            &format!("{:.0} MB/s (the raw link)", rate(raw)),
            rate(time) / rate(raw),
            bound,
        );
    }
    let grown = (peak - before) / (1 << 20);
    let agent = agent_memory(vm).await?;
    fact(
        "memory meanwhile",
        &format!("host +{grown} MiB, agent and workers {agent} KiB"),
        "flat",
        grown < 32 && agent < 4096,
    );
    Ok(())
}

/// Returns the anonymous memory of the agent and its workers, in KiB.
async fn agent_memory(vm: &Vm) -> Result<u64> {
    let line = "s=0; for p in /proc/[0-9]*; do if [ \"$(cat $p/comm)\" = init ]; then \
        set -- $(grep RssAnon $p/status); s=$((s + $2)); fi; done; echo $s";
    let output = vm.exec_command(Command::shell(line)).await?;
    output.stdout_text().trim().parse().context("no number")
}

/// 20,000 files of 1 KiB.
async fn small_files(vm: &Vm) -> Result<()> {
    // In memory, so that the host's disk is not measured.
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let tree = folder.path().join("tree");
    for number in 0..SMALL_FILES {
        let directory = tree.join(format!("d{}", number / 200));
        if number % 200 == 0 {
            fs::create_dir_all(&directory)?;
        }
        let bytes: Vec<u8> = (0..1024u32)
            .map(|at| (at * 7 + number as u32) as u8)
            .collect();
        fs::write(directory.join(format!("f{number}")), bytes)?;
    }
    let files = vm.files().at("/workspace");
    let (mut pushes, mut again, mut pulls, mut manifests) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The times of the guest's file system alone, without a link.
    let (mut made, mut seen, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        // Syncs, so that writeback of one does not slow down the other.
        shell(vm, "mkdir /workspace/tar && sync").await?;
        let (tar_in, ()) = timed(tar_into(vm, &tree)).await?;
        shell(vm, "sync").await?;
        let (push, _) = timed(async { Ok(files.push(&tree, "ours").run().await?) }).await?;
        let (repeat, pushed) = timed(async { Ok(files.push(&tree, "ours").run().await?) }).await?;
        ensure!(pushed.entries == 0, "{pushed:?}");
        pushes.push((tar_in, push));
        again.push((push, repeat));
        shell(vm, "sync").await?;
        let (tar_out, ()) = timed(tar_out_of(vm, &folder.path().join("tar"))).await?;
        let (pull, _) = timed(async {
            Ok(files
                .pull("ours", folder.path().join("pulled"))
                .run()
                .await?)
        })
        .await?;
        pulls.push((tar_out, pull));
        let sums = "cd /workspace/ours && find . -type f | xargs sha256sum > /dev/null";
        let sums = shell(vm, sums).await?;
        let (manifest, _) = timed(manifest(&files)).await?;
        manifests.push((manifest, sums));
        let same = std::process::Command::new("diff")
            .args(["-r", "tree", "pulled"])
            .current_dir(folder.path())
            .status()?;
        ensure!(same.success(), "what came out is not what went in");
        for name in ["tar", "pulled"] {
            fs::remove_dir_all(folder.path().join(name))?;
        }
        shell(vm, "rm -r /workspace/tar /workspace/ours && sync").await?;
        made.push((tar_in, in_guest(vm, "make_files").await?));
        seen.push((push, in_guest(vm, "stat_files").await?));
        shell(vm, "sync").await?;
        read.push((tar_out, in_guest(vm, "read_files").await?));
        shell(vm, "rm -r /workspace/made").await?;
    }
    let times = |name: &str, rounds, against: &str, bound| {
        let (slow, fast): (Duration, Duration) = median_round(rounds);
        row(
            &format!("{name}, times as fast"),
            &format!("{} ms", fast.as_millis()),
            &format!("{} ms ({against})", slow.as_millis()),
            slow.as_secs_f64() / fast.as_secs_f64(),
            bound,
        );
    };
    let (three, twenty) = (Bound::AtLeast(3.0), Bound::AtLeast(20.0));
    let tar = "tar | exec tar -x";
    times("20,000 files of 1 KiB into the guest", pushes, tar, three);
    times("making them in the guest, no link", made, tar, Bound::None);
    let first = "the first time";
    times("the same again, unchanged", again, first, twenty);
    times("looking at them, no link", seen, first, Bound::None);
    let tar = "exec tar -c | tar -x";
    times("20,000 files out of the guest", pulls, tar, three);
    times("reading them in the guest, no link", read, tar, Bound::None);
    let (ours, sums) = median_round(manifests);
    row(
        "a manifest of 20,000 files",
        &format!("{} ms", ours.as_millis()),
        &format!("{} ms (sha256sum in the guest)", sums.as_millis()),
        ours.as_secs_f64() / sums.as_secs_f64(),
        Bound::AtMost(1.5),
    );
    Ok(())
}

/// Returns the time that the baselines' program measures for a task in the guest.
async fn in_guest(vm: &Vm, task: &str) -> Result<Duration> {
    let command = Command::new(PROGRAM)
        .env("vmcell_bench", task)
        .timeout(Duration::from_secs(600));
    let output = vm.exec_command(command).await?;
    ensure!(output.success(), "{task}: {output:?}");
    Ok(Duration::from_nanos(output.stdout_text().trim().parse()?))
}

async fn manifest(files: &Files) -> Result<()> {
    let manifest = files.manifest("ours", ManifestOptions::new()).await?;
    ensure!(manifest.len() == SMALL_FILES + SMALL_FILES / 200);
    Ok(())
}

async fn tar_into(vm: &Vm, tree: &Path) -> Result<()> {
    let mut tar = tokio::process::Command::new("tar")
        .args(["-c", "."])
        .current_dir(tree)
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut stdout = tar.stdout.take().context("no pipe")?;
    let command = Command::new("tar")
        .args(["-x", "-C", "/workspace/tar"])
        .stdin_stream();
    let mut parts = vm.exec_stream(command)?.into_parts();
    tokio::io::copy(&mut stdout, &mut parts.stdin).await?;
    parts.stdin.shutdown().await?;
    ensure!(parts.waiter.wait().await?.success());
    ensure!(tar.wait().await?.success());
    Ok(())
}

async fn tar_out_of(vm: &Vm, destination: &Path) -> Result<()> {
    fs::create_dir_all(destination)?;
    let mut tar = tokio::process::Command::new("tar")
        .args(["-x"])
        .current_dir(destination)
        .stdin(std::process::Stdio::piped())
        .spawn()?;
    let mut stdin = tar.stdin.take().context("no pipe")?;
    let command = Command::new("tar").args(["-c", "-C", "/workspace/tar", "."]);
    let mut parts = vm.exec_stream(command)?.into_parts();
    tokio::io::copy(&mut parts.stdout, &mut stdin).await?;
    drop(stdin);
    ensure!(parts.waiter.wait().await?.success());
    ensure!(tar.wait().await?.success());
    Ok(())
}

/// Measures pings and commands while a large file is synced.
async fn during_sync(vm: &Vm) -> Result<()> {
    let files = vm.files().at("/workspace");
    let mut rounds = Vec::new();
    let mut bare = Vec::new();
    let mut pings = Vec::new();
    for _ in 0..9 {
        let idle = median(exec_times(vm, 20).await?);
        make_dirty(vm).await?;
        let sync = {
            let files = files.clone();
            tokio::spawn(async move { files.sync("dirty").await })
        };
        let (pinged, execs) = times_during(vm, sync).await?;
        rounds.push((median(execs), idle));
        pings.extend(pinged);
        // The same with a program in the guest, without an agent.
        let idle = in_guest(vm, "spawn").await?;
        make_dirty(vm).await?;
        bare.push((in_guest(vm, "spawn_beside_sync").await?, idle));
    }
    files.remove("dirty").await?;
    print_rows("while 1 GiB is synced", &pings, rounds, TWICE);
    print_rows("while 1 GiB is synced, no agent", &[], bare, Bound::None);
    Ok(())
}

/// Measures pings and commands while a worker removes many files.
async fn during_removal(vm: &Vm) -> Result<()> {
    let files = vm.files().at("/workspace");
    let make = "mkdir /workspace/many && cd /workspace/many && \
        for d in $(seq 100); do mkdir $d; (cd $d; touch $(seq 1000)); done";
    let mut rounds = Vec::new();
    let mut pings = Vec::new();
    for _ in 0..3 {
        let idle = median(exec_times(vm, 50).await?);
        shell(vm, make).await?;
        let remove = {
            let files = files.clone();
            tokio::spawn(async move { files.remove_tree("many").await })
        };
        let (pinged, execs) = times_during(vm, remove).await?;
        rounds.push((median(execs), idle));
        pings.extend(pinged);
    }
    print_rows("while 100,000 files are removed", &pings, rounds, TWICE);
    Ok(())
}

/// How much longer a command may take while the disk is busy.
const TWICE: Bound = Bound::AtMost(2.0);

/// Writes 1 GiB without syncing it, so that as much of it is dirty as the guest's
/// kernel allows.
async fn make_dirty(vm: &Vm) -> Result<()> {
    let line = "rm -f /workspace/dirty; sync; \
        dd if=/dev/zero of=/workspace/dirty bs=1M count=1024 status=none";
    shell(vm, line).await.map(drop)
}

/// Returns the times of pings and commands until the work is done.
async fn times_during(
    vm: &Vm,
    work: tokio::task::JoinHandle<Result<(), vmcell::Error>>,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut pings, mut execs) = (Vec::new(), Vec::new());
    while !work.is_finished() {
        let ping = vm.health().await.round_trip;
        pings.push(ping.context("no answer")?);
        execs.extend(exec_times(vm, 1).await?);
    }
    work.await??;
    Ok((pings, execs))
}

/// Prints the rows. Each round has the time of commands during the work and of idle
/// ones.
fn print_rows(name: &str, pings: &[Duration], rounds: Vec<(Duration, Duration)>, bound: Bound) {
    if let Some(slowest) = pings.iter().max() {
        fact(
            &format!("slowest of {} pings {name}", pings.len()),
            &format!("{:.1} ms", slowest.as_secs_f64() * 1e3),
            "<= 100 ms",
            *slowest <= Duration::from_millis(100),
        );
    }
    let (busy, idle) = median_round(rounds);
    row(
        &format!("p50 of exec {name}"),
        &format!("{} us", busy.as_micros()),
        &format!("{} us (idle)", idle.as_micros()),
        busy.as_secs_f64() / idle.as_secs_f64(),
        bound,
    );
}

async fn exec_times(vm: &Vm, count: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..count {
        let (time, output) = timed(async { Ok(vm.exec(["/bin/true"]).await?) }).await?;
        ensure!(output.success());
        times.push(time);
    }
    Ok(times)
}
