//! Sizes: the agent, the guest kernel, the image `base`, and the smallest VM.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use vmcell::{Command, Vm, VmBuilder};
use vmcell_benches::{
    baseline::Machine,
    summary::{fact, head, median},
};
use vmcell_rootfs::{Cache, recipe};

const COMMANDS: usize = 1000;
const ROUNDS: usize = 9;

#[tokio::main]
async fn main() -> Result<()> {
    let image = recipe::base().cached()?.path;
    head();
    let vm = Vm::builder().image(&image).start().await?;
    agent(&vm).await?;
    kernel(&Machine::of(&vm, &image)?)?;
    vm.kill().await?;
    smallest_vm(&image).await?;
    base_image()
}

/// The size of the agent's program and of its memory.
async fn agent(vm: &Vm) -> Result<()> {
    let size = number(vm, "wc -c < /proc/1/exe").await?;
    fact(
        "agent, a static program",
        &format!("{size} bytes"),
        "<= 640 KB",
        size <= 640_000,
    );
    let resident = "grep VmRSS /proc/1/status | tr -dc 0-9";
    let after_boot = number(vm, resident).await?;
    for _ in 0..COMMANDS {
        ensure!(vm.exec(["true"]).await?.success());
    }
    let after_commands = number(vm, resident).await?;
    fact(
        "its memory after boot, and after 1,000 commands",
        &format!("{after_boot} KiB, {after_commands} KiB"),
        "<= 1 MiB",
        after_boot.max(after_commands) <= 1024,
    );
    Ok(())
}

/// Returns the number that a shell command line prints.
async fn number(vm: &Vm, line: &str) -> Result<u64> {
    let output = vm.exec_command(Command::shell(line)).await?;
    output.stdout_text().trim().parse().context("no number")
}

fn kernel(machine: &Machine) -> Result<()> {
    let size = fs::metadata(machine.kernel())?.len();
    let measured = format!("{:.1} MB", size as f64 / 1e6);
    println!("| guest kernel, `vmlinux` | {measured} | | | | |");
    Ok(())
}

/// A VM with the least memory writes more than it has.
async fn smallest_vm(image: &Path) -> Result<()> {
    let memory = VmBuilder::MIN_MEMORY_MIB;
    let vm = Vm::builder()
        .image(image)
        .memory_mib(memory)
        .start()
        .await?;
    let line = "dd if=/dev/zero of=/large bs=1M count=100 status=none && wc -c < /large";
    let written = number(&vm, line).await?;
    vm.kill().await?;
    fact(
        &format!("a VM with {memory} MiB"),
        &format!("boots, and writes {} MiB to its disk", written >> 20),
        "works",
        written == 100 << 20,
    );
    Ok(())
}

/// The time to build the image `base`, and to find it in the cache.
fn base_image() -> Result<()> {
    let (mut built, mut found) = (Vec::new(), Vec::new());
    let mut allocated = 0;
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir()?;
        let cache = Cache::at(folder.path());
        let mut time = || -> Result<Duration> {
            let begun = Instant::now();
            let image = cache.image(&recipe::base())?;
            let time = begun.elapsed();
            allocated = fs::metadata(image.path)?.blocks() * 512;
            Ok(time)
        };
        built.push(time()?);
        found.push(time()?);
    }
    println!(
        "| image `base` | built in {} ms, {:.1} MB on disk; {} ms from the cache | | | | |",
        median(built).as_millis(),
        allocated as f64 / 1e6,
        median(found).as_millis()
    );
    Ok(())
}
