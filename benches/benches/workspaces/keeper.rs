use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};
use vmcell::{Command, Error, Output, Vm, workspace::Workspace};
use vmcell_benches::{
    baseline::{Baseline, FLOOD_BYTES, Machine},
    summary::{Bound, median, median_round, row},
    transfers::{output_time, read_time, write_time},
};

use crate::{compare, store::Store, timed};

const ROUNDS: usize = 9;
const EXECS: usize = 50;

/// Two workspaces, one that this program runs and one that a keeper does.
struct Pair {
    resident: Workspace,
    kept: Workspace,
    /// The VM of the first, which belongs to this program.
    own: Vm,
    /// That of the other, which this program reaches through the keeper.
    attached: Vm,
}

impl Pair {
    async fn start(store: &Store, image: &Path) -> Result<Self> {
        let (resident, kept) = (store.stopped(image).await?, store.stopped(image).await?);
        let kept = store.kept.get(kept.id()).await?;
        Ok(Self {
            own: resident.start().await?,
            attached: kept.start().await?,
            resident,
            kept,
        })
    }

    async fn delete(self) -> Result<()> {
        self.resident.delete().await?;
        Ok(self.kept.delete().await?)
    }
}

/// Commands through the keeper, compared with those of the program that owns the VM.
pub(crate) async fn commands(store: &Store, image: &Path) -> Result<()> {
    let pair = Pair::start(store, image).await?;
    let (mut attached, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let own = exec_time(async || pair.own.exec(["/bin/true"]).await).await?;
        let time = exec_time(async || pair.attached.exec(["/bin/true"]).await);
        attached.push((time.await?, own));
        let time = exec_time(async || pair.kept.exec(Command::new("/bin/true")).await);
        recorded.push((time.await?, own));
    }
    let baseline = "by the program that runs it";
    let name = "p50 of exec of /bin/true, through the keeper";
    compare(name, attached, baseline, Bound::AtMost(1.1));
    let name = "the same with `Workspace::exec`, which writes the history";
    compare(name, recorded, baseline, Bound::AtMost(1.1));
    pair.delete().await
}

async fn exec_time(exec: impl AsyncFn() -> Result<Output, Error>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..EXECS {
        let (time, output) = timed(exec()).await?;
        ensure!(output.success(), "{output:?}");
        times.push(time);
    }
    Ok(median(times))
}

/// Bulk data through the keeper, compared with the program that owns the VM.
pub(crate) async fn transfers(store: &Store, image: &Path) -> Result<()> {
    let pair = Pair::start(store, image).await?;
    let machine = Machine::of(&pair.own, image)?;
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    let mut bare = Vec::new();
    for _ in 0..ROUNDS {
        let [output, writes, reads] = &mut rounds;
        let direct = Baseline::flood_time(&machine)?;
        bare.push((Baseline::passed_on_time(&machine)?, direct));
        let (ours, own) = (&pair.attached, &pair.own);
        output.push((output_time(ours).await?, output_time(own).await?));
        writes.push((write_time(ours).await?, write_time(own).await?));
        reads.push((read_time(ours).await?, read_time(own).await?));
    }
    let names = [
        "256 MiB of output through `exec_stream` and the keeper",
        "a file of 256 MiB into the guest, through the keeper",
        "a file of 256 MiB out of the guest, through the keeper",
    ];
    let baseline = "by the program that runs it";
    for (name, rounds) in names.into_iter().zip(rounds) {
        compare_rates(name, rounds, baseline, Bound::AtLeast(0.9));
    }
    let name = "the raw link through `cat`, which only passes its bytes on";
    compare_rates(name, bare, "the raw link", Bound::None);
    pair.delete().await
}

/// Prints a row of the rates of the rounds.
fn compare_rates(name: &str, rounds: Vec<(Duration, Duration)>, baseline: &str, bound: Bound) {
    let (ours, theirs) = median_round(rounds);
    let rate = |time: Duration| FLOOD_BYTES as f64 / 1e6 / time.as_secs_f64();
    row(
        name,
        &format!("{:.0} MB/s", rate(ours)),
        &format!("{:.0} MB/s ({baseline})", rate(theirs)),
        rate(ours) / rate(theirs),
        bound,
    );
}
