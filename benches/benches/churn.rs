//! Starts and ends VMs at random for two minutes, on two backends at once, and
//! counts the resources that are left over.
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
use vmcell_benches::{
    memory::descriptors,
    summary::{fact, head},
};

/// For how long new VMs are started.
const DURATION: Duration = Duration::from_secs(120);

/// The number of concurrent VMs on each backend.
const PROCESSES: u64 = 20;
const VMS: u64 = 4;

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    // A first run creates what is created once and kept.
    runtime.block_on(run(&image, Instant::now()))?;
    let before = Resources::count()?;
    let counts = runtime.block_on(run(&image, Instant::now() + DURATION))?;
    let after = Resources::count()?;

    head();
    let left = before.compare(&after);
    let measured = format!(
        "{} on `process` and {} on `qemu` in {} s; left: {left}",
        counts.processes,
        counts.vms,
        DURATION.as_secs()
    );
    let name = format!("{PROCESSES} and {VMS} VMs come and go at random");
    fact(&name, &measured, "nothing left", left == "nothing");
    Ok(())
}

/// The number of VMs that were started and ended.
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
            workers.spawn(start_and_end_vms(process.clone(), seed, until, true));
        }
    }
    for seed in 0..VMS {
        // Half of them use a link that needs a run folder and a second program.
        let link = match seed % 2 {
            0 => LinkKind::Serial,
            _ => LinkKind::HybridVsock,
        };
        let qemu = plain.clone().backend("qemu").link(link);
        workers.spawn(start_and_end_vms(qemu, seed, until, false));
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

/// Starts VMs one after the other, at least one, and ends them in various ways.
async fn start_and_end_vms(
    builder: VmBuilder,
    seed: u64,
    until: Instant,
    is_process: bool,
) -> Result<(usize, bool)> {
    let mut random = seed;
    let mut count = 0;
    loop {
        // The linear congruential generator of Knuth's MMIX; its upper bits are used.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let vm = builder.clone().start().await?;
        vm.spawn(Command::from_argv(["sleep", "1000"])).await?;
        match random >> 62 {
            0 | 1 => vm.kill().await?,
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

/// Counts of the resources that VMs could leave behind.
#[derive(Debug)]
struct Resources {
    processes: usize,
    descriptors: usize,
    mounts: usize,
    cgroups: usize,
    folders: usize,
    sockets: usize,
}

impl Resources {
    fn count() -> Result<Self> {
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

/// Returns the number of children of this process, including zombies.
fn children() -> Result<usize> {
    let us = std::process::id().to_string();
    let mut count = 0;
    for entry in fs::read_dir("/proc")? {
        let stat = fs::read_to_string(entry?.path().join("stat")).unwrap_or_default();
        // The name may contain any characters, and ends with the last parenthesis.
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
