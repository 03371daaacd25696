//! VMs that come and go at random for two minutes, on two backends at once, and
//! what they leave behind.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::{runtime::Runtime, task::JoinSet};
use vmcell::{
    Command, LinkKind, Vm, VmBuilder,
    backend::{Backend as _, HostProcess, RunFolder},
};
use vmcell_benches::{memory::descriptors, summary::fact};

/// For how long new ones are started.
const TIME: Duration = Duration::from_secs(120);

/// How many there are at once.
const PROCESSES: u64 = 20;
const VMS: u64 = 4;

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    // What is made once and stays is there before the first look.
    runtime.block_on(run(&image, Instant::now()))?;
    let before = Traces::look()?;
    let counts = runtime.block_on(run(&image, Instant::now() + TIME))?;
    let after = Traces::look()?;

    println!("| what | measured | | | promised | |");
    println!("|---|---|---|---|---|---|");
    let left = before.compare(&after);
    let measured = format!(
        "{} on `process` and {} on `qemu` in {} s; left: {left}",
        counts.processes,
        counts.vms,
        TIME.as_secs()
    );
    let name = format!("{PROCESSES} and {VMS} VMs come and go at random");
    fact(&name, &measured, "nothing left", left == "nothing");
    Ok(())
}

/// How many were started and ended.
#[derive(Default)]
struct Counts {
    processes: usize,
    vms: usize,
}

async fn run(image: &Path, until: Instant) -> Result<Counts> {
    let mut workers = JoinSet::new();
    let plain = Vm::builder().image(image).memory_mib(128);
    if HostProcess::new().health().is_available {
        let process = plain.clone().backend("process").allow_host_compat();
        for seed in 0..PROCESSES {
            workers.spawn(come_and_go(process.clone(), seed, until, true));
        }
    }
    for seed in 0..VMS {
        // Half of them need a folder and a second program.
        let link = match seed % 2 {
            0 => LinkKind::Serial,
            _ => LinkKind::HybridVsock,
        };
        let qemu = plain.clone().backend("qemu").link(link);
        workers.spawn(come_and_go(qemu, seed, until, false));
    }
    let mut counts = Counts::default();
    while let Some(worker) = workers.join_next().await {
        let (count, is_process) = worker??;
        match is_process {
            true => counts.processes += count,
            false => counts.vms += count,
        }
    }
    Ok(counts)
}

/// Starts VMs one after the other, at least one, and ends them in all ways.
async fn come_and_go(
    builder: VmBuilder,
    seed: u64,
    until: Instant,
    is_process: bool,
) -> Result<(usize, bool)> {
    let mut chance = seed;
    let mut count = 0;
    loop {
        // As in Knuth's MMIX: the upper bits are as good as random.
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let vm = builder.clone().start().await?;
        vm.spawn(Command::from_argv(["sleep", "1000"])).await?;
        match chance >> 62 {
            0 | 1 => vm.kill().await,
            2 => vm.stop().await?,
            _ => {
                ensure!(vm.exec(["true"]).await?.success());
                vm.stop().await?;
            }
        }
        count += 1;
        if Instant::now() >= until {
            return Ok((count, is_process));
        }
    }
}

/// What VMs could leave behind.
#[derive(Debug)]
struct Traces {
    processes: usize,
    descriptors: usize,
    mounts: usize,
    cgroups: usize,
    folders: usize,
    sockets: usize,
}

impl Traces {
    fn look() -> Result<Self> {
        let lines = |path: &str| fs::read_to_string(path).map(|text| text.lines().count());
        let folders = fs::read_dir(RunFolder::base()).map_or(0, Iterator::count);
        Ok(Self {
            processes: children()?,
            descriptors: descriptors()?,
            mounts: lines("/proc/self/mountinfo").context("mounts")?,
            cgroups: cgroups(Path::new("/sys/fs/cgroup")),
            folders,
            sockets: fs::read_to_string("/proc/net/unix")?
                .matches("vmcell")
                .count(),
        })
    }

    fn compare(&self, after: &Self) -> String {
        let counts = [
            ("processes", self.processes, after.processes),
            ("descriptors", self.descriptors, after.descriptors),
            ("mounts", self.mounts, after.mounts),
            ("cgroups", self.cgroups, after.cgroups),
            ("run folders", self.folders, after.folders),
            ("sockets", self.sockets, after.sockets),
        ];
        let left = counts.iter().filter(|(_, before, after)| after > before);
        let left: Vec<_> = left
            .map(|(what, before, after)| format!("{} {what}", after - before))
            .collect();
        match left.is_empty() {
            true => "nothing".to_owned(),
            false => left.join(", "),
        }
    }
}

/// How many processes are children of this one, zombies included.
fn children() -> Result<usize> {
    let us = std::process::id().to_string();
    let mut count = 0;
    for entry in fs::read_dir("/proc")? {
        let stat = fs::read_to_string(entry?.path().join("stat")).unwrap_or_default();
        // The name may hold anything, and ends with the last parenthesis.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        count += usize::from(parent == Some(us.as_str()));
    }
    Ok(count)
}

fn cgroups(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| 1 + cgroups(&entry.path()))
        .sum()
}
