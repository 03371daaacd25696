//! The same VM over one link and another, each against that link without us.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use vmcell::{
    Command, ExecEvent, LinkKind, Vm,
    files::{ReadOptions, WriteOptions},
};
use vmcell_benches::{
    baseline::{Baseline, FLOOD, Machine},
    summary::{Bound, median, middle_round, row},
};

/// How many times each thing is measured, in turns with its baseline.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let image = vmcell_rootfs::recipe::base()
        .size(vmcell_rootfs::Size::Exact(1 << 30))
        .cached()?
        .path;
    println!("| link | what | measured | the raw link | ratio | | |");
    println!("|---|---|---|---|---|---|---|");
    for kind in [LinkKind::Serial, LinkKind::HybridVsock] {
        if wanted.as_deref().is_none_or(|wanted| wanted == kind.name()) {
            measure(kind, &image).await?;
        }
    }
    Ok(())
}

async fn measure(kind: LinkKind, image: &Path) -> Result<()> {
    let vm = Vm::builder().image(image).link(kind).start().await?;
    let machine = Machine::of(&vm, image)?;
    exec(&vm, &machine, kind).await?;
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let (raw_in, raw_out) = tokio::task::block_in_place(|| {
            let raw_in = Baseline::drain_time(&machine)?;
            anyhow::Ok((raw_in, Baseline::flood_time(&machine)?))
        })?;
        let [streams, writes, reads] = &mut rounds;
        streams.push((stream(&vm).await?, raw_out));
        writes.push((write(&vm).await?, raw_in));
        reads.push((read(&vm).await?, raw_out));
    }
    let names = [
        "256 MiB of output through `exec_stream`",
        "a file of 256 MiB into the guest",
        "a file of 256 MiB out of the guest",
    ];
    for (name, rounds) in names.into_iter().zip(rounds) {
        let (ours, raw) = middle_round(rounds);
        let rate = |time: Duration| FLOOD as f64 / 1e6 / time.as_secs_f64();
        row(
            &format!("{kind} | {name}"),
            &format!("{:.0} MB/s", rate(ours)),
            &format!("{:.0} MB/s", rate(raw)),
            rate(ours) / rate(raw),
            Bound::None,
        );
    }
    vm.kill().await;
    Ok(())
}

/// A command that does nothing, against a round trip of a few bytes.
async fn exec(vm: &Vm, machine: &Machine, kind: LinkKind) -> Result<()> {
    let raw = tokio::task::block_in_place(|| Baseline::round_trips(machine, 300))?;
    let mut times = Vec::new();
    for _ in 0..300 {
        let begun = Instant::now();
        ensure!(vm.exec(["true"]).await?.success());
        times.push(begun.elapsed());
    }
    let (ours, raw) = (median(times), median(raw));
    row(
        &format!("{kind} | p50 of exec, against a round trip"),
        &format!("{:.2} ms", ours.as_secs_f64() * 1e3),
        &format!("{:.2} ms", raw.as_secs_f64() * 1e3),
        ours.as_secs_f64() / raw.as_secs_f64(),
        Bound::None,
    );
    Ok(())
}

async fn stream(vm: &Vm) -> Result<Duration> {
    let line = format!("dd if=/dev/zero bs=256k count={} status=none", FLOOD >> 18);
    let mut stream = vm.exec_stream(Command::from_argv(line.split(' ')))?;
    let mut begun = None;
    let mut received = 0;
    while let Some(event) = stream.next().await? {
        if let ExecEvent::Stdout(bytes) = event {
            // As for the raw link, the time begins with the first bytes.
            begun.get_or_insert_with(Instant::now);
            received += bytes.len();
        }
    }
    ensure!(received == FLOOD, "{received} bytes came");
    Ok(begun.map(|begun| begun.elapsed()).unwrap_or_default())
}

async fn write(vm: &Vm) -> Result<Duration> {
    let piece = bytes::Bytes::from(vec![7u8; 256 * 1024]);
    let begun = Instant::now();
    let options = WriteOptions::new().size(FLOOD as u64);
    let files = vm.files().at("/workspace");
    let mut writer = files.writer("large", options).await?;
    for _ in 0..FLOOD / piece.len() {
        writer.write(piece.clone()).await?;
    }
    writer.finish().await?;
    Ok(begun.elapsed())
}

async fn read(vm: &Vm) -> Result<Duration> {
    let begun = Instant::now();
    let files = vm.files().at("/workspace");
    let mut reader = files.reader("large", ReadOptions::new()).await?;
    let mut count = 0;
    while let Some(bytes) = reader.next().await? {
        count += bytes.len();
    }
    ensure!(count == FLOOD, "{count} bytes came");
    Ok(begun.elapsed())
}
