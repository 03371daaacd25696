//! VMs that start from a template or are saved, compared with VMs that boot and with
//! plain QEMU, measured alternately in one run.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use vmcell::{Pool, Template, Vm, VmBuilder, snapshot::SnapshotOptions};
use vmcell_benches::{
    bare_restore::BareTemplate,
    memory,
    summary::{Bound, fact, head, median, median_round, row},
};

const ROUNDS: usize = 11;
const CLONES: usize = 20;

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let runtime = Runtime::new()?;
    head();
    runtime.block_on(async {
        let builder = || Vm::builder().image(&image);
        let template = Template::builder(builder()).get().await?;
        starts(&builder, &template).await?;
        pauses(&template).await?;
        memory(&builder, &template).await?;
        sizes(&builder, &template).await
    })
}

/// How long a VM took to answer, and to run its first command.
struct Start {
    answer: Duration,
    exec: Duration,
}

async fn measured(start: impl Future<Output = Result<Vm, vmcell::Error>>) -> Result<Start> {
    let begun = Instant::now();
    let vm = start.await?;
    let answer = begun.elapsed();
    ensure!(vm.exec(["/bin/true"]).await?.success());
    let exec = begun.elapsed();
    vm.kill().await?;
    Ok(Start { answer, exec })
}

async fn starts(builder: &impl Fn() -> VmBuilder, template: &Template) -> Result<()> {
    let vm = template.start().await?;
    let bare = BareTemplate::of(&vm, template.path())?;
    vm.kill().await?;
    let pool = Pool::builder(template.clone()).size(1).start();
    let mut answers = Vec::new();
    let mut execs = Vec::new();
    let mut bares = Vec::new();
    let (mut bare_answers, mut bare_execs) = (Vec::new(), Vec::new());
    let mut taken = Vec::new();
    let mut ready = Vec::new();
    for _ in 0..ROUNDS {
        let cold = measured(builder().start()).await?;
        let warm = measured(template.start()).await?;
        let plain = bare.start()?;
        bares.push((warm.answer, plain.start));
        bare_answers.push((plain.start, cold.answer));
        bare_execs.push((plain.exec_time()?, cold.exec));
        let kept = measured(builder().warm(true).start()).await?;
        ready.push((kept.exec, cold.exec));
        pool.filled().await;
        taken.push((measured(pool.take()).await?.exec, cold.exec));
        answers.push((warm.answer, cold.answer));
        execs.push((warm.exec, cold.exec));
    }
    let row = |name: &str, rounds, baseline: &str, bound| {
        let (ours, theirs): (Duration, Duration) = median_round(rounds);
        let times = |ratio: f64| match bound {
            Bound::AtLeast(_) => 1.0 / ratio,
            _ => ratio,
        };
        row(
            name,
            &format!("{} ms", ours.as_millis()),
            &format!("{} ms ({baseline})", theirs.as_millis()),
            times(ours.as_secs_f64() / theirs.as_secs_f64()),
            bound,
        );
    };
    let cold = "a boot; the ratio is how often it fits";
    row(
        "from a template to the agent's answer",
        answers,
        cold,
        Bound::AtLeast(10.0),
    );
    row(
        "from a template to the result of the first exec",
        execs,
        cold,
        Bound::AtLeast(5.0),
    );
    row(
        "plain QEMU, to the agent's answer",
        bare_answers,
        cold,
        Bound::AtLeast(10.0),
    );
    row(
        "plain QEMU, to the result of the first exec",
        bare_execs,
        cold,
        Bound::AtLeast(5.0),
    );
    let plain = "plain QEMU with the same files";
    row(
        "from a template to the agent's answer",
        bares,
        plain,
        Bound::AtMost(1.3),
    );
    row(
        "`warm(true)` to the result of the first exec",
        ready,
        cold,
        Bound::None,
    );
    row(
        "out of a pool to the result of an exec",
        taken,
        cold,
        Bound::AtLeast(20.0),
    );
    Ok(())
}

async fn pauses(template: &Template) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let vm = template.start().await?;
    let bare = BareTemplate::of(&vm, template.path())?;
    let mut bare = bare.start()?;
    let mut rounds = Vec::new();
    let mut changes = Vec::new();
    for round in 0..ROUNDS {
        let path = folder.path().join(round.to_string());
        let ours = vm.snapshot(&path).await?.pause;
        std::fs::remove_dir_all(path)?;
        rounds.push((ours, bare.snapshot_pause(folder.path())?));
        for change in 0..2 {
            let begun = Instant::now();
            match change {
                0 => vm.pause().await?,
                _ => vm.resume().await?,
            }
            changes.push(begun.elapsed());
        }
    }
    let (ours, theirs) = median_round(rounds);
    row(
        "snapshot of a VM of 1024 MiB that goes on: it stands still",
        &format!("{} ms", ours.as_millis()),
        &format!("{} ms (plain QEMU)", theirs.as_millis()),
        ours.as_secs_f64() / theirs.as_secs_f64(),
        Bound::AtMost(1.3),
    );
    let change = median(changes);
    fact(
        "pause, resume",
        &format!("{:.1} ms", change.as_secs_f64() * 1000.0),
        "below 5 ms",
        change < Duration::from_millis(5),
    );
    Ok(())
}

/// Compares the memory of idle VMs.
async fn memory(builder: &impl Fn() -> VmBuilder, template: &Template) -> Result<()> {
    let cold = builder().start().await?;
    ensure!(cold.exec(["/bin/true"]).await?.success());
    let cold_size = proportional_size(&cold)?;
    cold.kill().await?;
    let mut vms = Vec::new();
    for _ in 0..CLONES {
        vms.push(template.start().await?);
    }
    let sizes: Result<Vec<_>> = vms.iter().map(proportional_size).collect();
    let mean = sizes?.iter().sum::<usize>() / CLONES;
    row(
        &format!("memory of each of {CLONES} idle VMs of a template (Pss)"),
        &format!("{} MiB", mean >> 20),
        &format!("{} MiB (a VM that has booted)", cold_size >> 20),
        mean as f64 / cold_size as f64,
        Bound::AtMost(0.34),
    );
    Ok(())
}

/// Returns the memory of a VM's VMM, with its share of what it has in common with others.
fn proportional_size(vm: &Vm) -> Result<usize> {
    let name = format!("vmcell-{}", vm.id());
    for entry in std::fs::read_dir("/proc")? {
        let process = entry?.path();
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        if words
            .split(|byte| *byte == 0)
            .any(|word| word == name.as_bytes())
        {
            return memory::proportional(&process);
        }
    }
    anyhow::bail!("{name} has no VMM")
}

async fn sizes(builder: &impl Fn() -> VmBuilder, template: &Template) -> Result<()> {
    let info = Template::find(template.name())
        .await?
        .context("no template")?;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    fact(
        "a template of the VM of 1024 MiB on the disk",
        &format!("{:.1} MB", megabytes(info.bytes)),
        "at most 60 MB",
        info.bytes <= 60_000_000,
    );
    let folder = tempfile::tempdir()?;
    let vm = builder().start().await?;
    let size = compressed_size(&vm, folder.path()).await?;
    fact(
        "a snapshot of it, compressed",
        &format!("{:.1} MB", megabytes(size)),
        "at most 12 MB",
        size <= 12_000_000,
    );
    Ok(())
}

async fn compressed_size(vm: &Vm, folder: &Path) -> Result<u64> {
    let options = SnapshotOptions::new().compress(true);
    Ok(vm
        .snapshot_with(folder.join("compressed"), options)
        .await?
        .bytes)
}
