use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use vmcell::workspace::{BASELINE, NewWorkspace, Workspace};
use vmcell_benches::summary::Bound;
use vmcell_rootfs::{Size, recipe};

use crate::{compare, store::Store, timed};

/// Rounds of what boots a VM.
const BOOTS: usize = 11;
/// Rounds of what takes milliseconds, most of which is the host's disk.
const ROUNDS: usize = 41;

/// What is done with workspaces of a large disk, compared with a small one.
pub(crate) async fn disk_sizes(store: &Store) -> Result<()> {
    let [large, small] = [100, 1].map(image);
    let (large, small) = (large?, small?);
    boots(store, &large, &small).await?;
    changes(store, &large, &small).await
}

fn image(gib: u64) -> Result<PathBuf> {
    let image = recipe::base().size(Size::Exact(gib << 30));
    Ok(image.cached()?.path)
}

async fn boots(store: &Store, large: &Path, small: &Path) -> Result<()> {
    let (mut plain, mut creates, mut snapshots, mut resets) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BOOTS {
        plain.push((
            boot_time(store, large).await?,
            boot_time(store, small).await?,
        ));
        let large = Times::measure(store, large).await?;
        let small = Times::measure(store, small).await?;
        creates.push((large.create, small.create));
        snapshots.push((large.snapshot, small.snapshot));
        resets.push((large.reset, small.reset));
    }
    let bound = Bound::AtMost(1.2);
    compare("create with a disk of 100 GiB", creates, SMALL, bound);
    compare(
        "a boot of a VM, without a workspace",
        plain,
        SMALL,
        Bound::None,
    );
    compare("snapshot while it runs", snapshots, SMALL, bound);
    compare("reset while it runs, with a boot", resets, SMALL, bound);
    Ok(())
}

const SMALL: &str = "1 GiB";

async fn boot_time(store: &Store, image: &Path) -> Result<Duration> {
    let (time, vm) = timed(store.plain_vm(image).image(image).start()).await?;
    vm.kill().await?;
    Ok(time)
}

/// How long it took to use a workspace.
struct Times {
    create: Duration,
    snapshot: Duration,
    reset: Duration,
}

impl Times {
    async fn measure(store: &Store, image: &Path) -> Result<Self> {
        let (create, workspace) = timed(store.resident.create(NewWorkspace::new(image))).await?;
        let (snapshot, _) = timed(workspace.snapshot("now")).await?;
        let (reset, _) = timed(workspace.reset(BASELINE)).await?;
        workspace.delete().await?;
        Ok(Self {
            create,
            snapshot,
            reset,
        })
    }
}

/// What changes only files of the host.
async fn changes(store: &Store, large: &Path, small: &Path) -> Result<()> {
    let (large, small) = (store.stopped(large).await?, store.stopped(small).await?);
    let (mut snapshots, mut resets, mut forks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        snapshots.push((snapshot_time(&large).await?, snapshot_time(&small).await?));
        resets.push((reset_time(&large).await?, reset_time(&small).await?));
        forks.push((fork_time(&large).await?, fork_time(&small).await?));
    }
    let bound = Bound::AtMost(1.2);
    compare("snapshot while it is stopped", snapshots, SMALL, bound);
    compare("reset while it is stopped", resets, SMALL, bound);
    compare("fork", forks, SMALL, bound);
    large.delete().await?;
    Ok(small.delete().await?)
}

async fn snapshot_time(workspace: &Workspace) -> Result<Duration> {
    let (time, _) = timed(workspace.snapshot("now")).await?;
    workspace.delete_snapshot("now").await?;
    Ok(time)
}

/// Also makes the chain of layers that the snapshots leave as short as it was.
async fn reset_time(workspace: &Workspace) -> Result<Duration> {
    Ok(timed(workspace.reset(BASELINE)).await?.0)
}

async fn fork_time(workspace: &Workspace) -> Result<Duration> {
    let (time, fork) = timed(workspace.fork(BASELINE, |new| new)).await?;
    fork.delete().await?;
    Ok(time)
}
