use std::{fs, path::Path};

use anyhow::Result;
use vmcell::snapshot::SnapshotOptions;
use vmcell_benches::summary::Bound;

use crate::{compare, store::Store, timed};

const ROUNDS: usize = 11;

/// Starts of a stopped workspace, compared with starts of its VM without one.
pub(crate) async fn start(store: &Store, image: &Path) -> Result<()> {
    let workspace = store.stopped(image).await?;
    let kept = store.kept.get(workspace.id()).await?;
    let disk = store.plain_disk("start", image)?;
    let plain = || store.plain_vm(image).disk(&disk);
    // The workspace has booted once, too, and written to its disk.
    plain().start().await?.stop().await?;
    let (mut resident_rounds, mut kept_rounds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (baseline, vm) = timed(plain().start()).await?;
        vm.stop().await?;
        for (workspace, rounds) in [
            (&workspace, &mut resident_rounds),
            (&kept, &mut kept_rounds),
        ] {
            let (ours, _) = timed(workspace.start()).await?;
            workspace.stop().await?;
            rounds.push((ours, baseline));
        }
    }
    let (baseline, bound) = ("its VM", Bound::AtMost(1.2));
    compare("start of a stopped one", resident_rounds, baseline, bound);
    let name = "the same, with a keeper";
    compare(name, kept_rounds, baseline, bound);
    Ok(workspace.delete().await?)
}

/// Starts of a paused workspace, compared with VMs that are restored without one.
pub(crate) async fn resume(store: &Store, image: &Path) -> Result<()> {
    let workspace = store.stopped(image).await?;
    let kept = store.kept.get(workspace.id()).await?;
    workspace.start().await?;
    let disk = store.plain_disk("resume", image)?;
    let plain = || store.plain_vm(image).disk(&disk);
    plain().start().await?.stop().await?;
    let mut vm = plain().start().await?;
    let memory = store.path("memory");
    let (mut resident_rounds, mut kept_rounds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let without_disk = SnapshotOptions::new().leave_disk(true);
        vm.snapshot_with(&memory, without_disk).await?;
        let baseline;
        (baseline, vm) = timed(plain().snapshot(&memory).start()).await?;
        fs::remove_dir_all(&memory)?;
        for (workspace, rounds) in [
            (&workspace, &mut resident_rounds),
            (&kept, &mut kept_rounds),
        ] {
            workspace.pause().await?;
            let (ours, _) = timed(workspace.start()).await?;
            rounds.push((ours, baseline));
        }
    }
    let (baseline, bound) = ("its VM, restored", Bound::AtMost(1.2));
    compare("start of a paused one", resident_rounds, baseline, bound);
    let name = "the same, with a keeper";
    compare(name, kept_rounds, baseline, bound);
    vm.kill().await?;
    Ok(workspace.delete().await?)
}
