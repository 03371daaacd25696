//! The same VM on every backend and link, each compared with the raw link.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::task::block_in_place;
use vmcell::{Error, LinkKind, Vm, VmBuilder, backend::Backends};
use vmcell_benches::{
    baseline::{Baseline, FLOOD_BYTES, Machine},
    socket_pair,
    summary::{Bound, head, median, median_round, row},
    transfers::{output_time, read_time, write_time},
};

/// The number of rounds, each of which also measures the baseline.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let image = vmcell_rootfs::recipe::base()
        .size(vmcell_rootfs::Size::Exact(1 << 30))
        .cached()?
        .path;
    head();
    for backend in Backends::new().iter() {
        let links: &[_] = match backend.name() {
            "qemu" => &[
                Some(LinkKind::Serial),
                Some(LinkKind::Vsock),
                Some(LinkKind::HybridVsock),
            ],
            _ => &[None],
        };
        for link in links {
            let mut name = backend.name().to_owned();
            let mut builder = Vm::builder().image(&image).backend(backend.name());
            if let Some(link) = link {
                name = format!("{name}, {link}");
                builder = builder.link(*link);
            }
            if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
                measure(&name, builder.allow_host_compat(), &image).await?;
            }
        }
    }
    Ok(())
}

/// The baseline: a link without vmcell.
enum RawLink {
    Machine(Machine),
    SocketPair,
}

impl RawLink {
    fn of(vm: &Vm, link: LinkKind, image: &Path) -> Result<Self> {
        match link {
            LinkKind::Socket => Ok(Self::SocketPair),
            _ => Ok(Self::Machine(Machine::of(vm, image)?)),
        }
    }

    fn round_trips(&self, count: usize) -> Result<Vec<Duration>> {
        match self {
            Self::Machine(machine) => Baseline::round_trips(machine, count),
            Self::SocketPair => socket_pair::round_trips(count),
        }
    }

    fn time_in(&self) -> Result<Duration> {
        match self {
            Self::Machine(machine) => Baseline::drain_time(machine),
            Self::SocketPair => socket_pair::flood_time(),
        }
    }

    fn time_out(&self) -> Result<Duration> {
        match self {
            Self::Machine(machine) => Baseline::flood_time(machine),
            Self::SocketPair => socket_pair::flood_time(),
        }
    }
}

async fn measure(name: &str, builder: VmBuilder, image: &Path) -> Result<()> {
    let vm = match builder.start().await {
        Ok(vm) => vm,
        Err(error @ (Error::BackendUnavailable { .. } | Error::Missing { .. })) => {
            println!("| {name} | | | | | skipped: {error} |");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let raw = RawLink::of(&vm, vm.health().await.link.kind, image)?;
    exec(&vm, &raw, name).await?;
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let (raw_in, raw_out) = block_in_place(|| anyhow::Ok((raw.time_in()?, raw.time_out()?)))?;
        let [streams, writes, reads] = &mut rounds;
        streams.push((output_time(&vm).await?, raw_out));
        writes.push((write_time(&vm).await?, raw_in));
        reads.push((read_time(&vm).await?, raw_out));
    }
    let names = [
        "256 MiB of output through `exec_stream`",
        "a file of 256 MiB into the guest",
        "a file of 256 MiB out of the guest",
    ];
    for (what, rounds) in names.into_iter().zip(rounds) {
        let (ours, raw) = median_round(rounds);
        let rate = |time: Duration| FLOOD_BYTES as f64 / 1e6 / time.as_secs_f64();
        row(
            &format!("{name}: {what}"),
            &format!("{:.0} MB/s", rate(ours)),
            &format!("{:.0} MB/s", rate(raw)),
            rate(ours) / rate(raw),
            Bound::None,
        );
    }
    vm.kill().await?;
    Ok(())
}

/// Compares a command that does nothing with a round trip of a few bytes.
async fn exec(vm: &Vm, raw: &RawLink, name: &str) -> Result<()> {
    let raw = block_in_place(|| raw.round_trips(300))?;
    let mut times = Vec::new();
    for _ in 0..300 {
        let begun = Instant::now();
        ensure!(vm.exec(["true"]).await?.success());
        times.push(begun.elapsed());
    }
    let (ours, raw) = (median(times), median(raw));
    row(
        &format!("{name}: p50 of exec, against a round trip"),
        &format!("{:.2} ms", ours.as_secs_f64() * 1e3),
        &format!("{:.2} ms", raw.as_secs_f64() * 1e3),
        ours.as_secs_f64() / raw.as_secs_f64(),
        Bound::None,
    );
    Ok(())
}
