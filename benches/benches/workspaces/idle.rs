use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use vmcell::Vm;
use vmcell_benches::{memory, summary::fact};

use crate::store::Store;

/// How long a keeper is left alone before it is measured, and meanwhile.
const TIME: Duration = Duration::from_secs(10);

/// What a keeper costs whose workspace nobody uses. QEMU is not part of it.
pub(crate) async fn idle(store: &Store, image: &Path) -> Result<()> {
    let workspace = store.stopped(image).await?;
    let workspace = store.kept.get(workspace.id()).await?;
    // Nobody is attached.
    drop(workspace.start().await?);
    let vms = Vm::list().await?;
    let vm = vms.into_iter().find(|vm| vm.id == workspace.id());
    let pid = vm.and_then(|vm| vm.owner_pid).context("no keeper")?;
    let process = Path::new("/proc").join(pid.to_string());
    tokio::time::sleep(TIME).await;
    let before = wakeups(&process)?;
    tokio::time::sleep(TIME).await;
    let rate = (wakeups(&process)? - before) as f64 / TIME.as_secs_f64();
    // All of it, because this program has the same code in memory.
    let size = memory::resident_of(&process)?;
    let mib = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    fact(
        "memory of an idle keeper (Rss)",
        &format!(
            "{}; Pss {}",
            mib(size),
            mib(memory::proportional(&process)?)
        ),
        "at most 12 MiB",
        size <= 12 << 20,
    );
    fact(
        "wake-ups of its threads",
        &format!("{rate:.1} in a second"),
        "those of the metrics, which look every second: at most 3",
        rate <= 3.0,
    );
    Ok(workspace.delete().await?)
}

/// Returns how often the threads of a process have waited for something.
fn wakeups(process: &Path) -> Result<u64> {
    let threads = fs::read_dir(process.join("task"))?;
    let threads: Result<Vec<PathBuf>, _> = threads.map(|it| it.map(|it| it.path())).collect();
    let counts = threads?.into_iter().map(|thread| {
        let status = fs::read_to_string(thread.join("status"))?;
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        Ok(count.context("no count")?.trim().parse::<u64>()?)
    });
    counts.sum()
}
