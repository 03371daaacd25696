//! A VM that is used by several activities at once, disturbed, and ended in some way.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::join_all;
use vmcell::{End, EndKind, Vm};

use crate::{
    activity::Activity, arguments::Kind, interference::Interference, random::Random, setup::Setup,
    step::Step,
};

/// The longest time after which an activity is dropped, if it is.
const LONGEST_ACTIVITY: Duration = Duration::from_secs(5);

pub(super) async fn use_and_end(setup: &Setup, random: &mut Random) -> Result<()> {
    let builder = setup.vm(&random.name()).vcpus(random.choose(&[1, 1, 2]));
    if random.one_in(8) {
        let cancelled_after = random.time_below(Duration::from_secs(4));
        // It leaves nothing, which is checked after the round.
        if let Ok(started) = tokio::time::timeout(cancelled_after, builder.start()).await {
            started?.kill().await?;
        }
        return Ok(());
    }
    let vm = builder.start().await?;
    let interference = Interference::choose(setup.kind, random);
    use_vm(&vm, setup.kind, interference, random).await?;
    end(vm, interference, random).await
}

/// Runs activities while something happens to the VM.
pub(super) async fn use_vm(
    vm: &Vm,
    kind: Kind,
    interference: Interference,
    random: &mut Random,
) -> Result<()> {
    let mut own = random.fork();
    let _step = Step::begin(format_args!("the use of {}", vm.id()));
    let activities = (0..random.below(4) + 1).map(|_| {
        let mut random = random.fork();
        let activity = Activity::choose(&mut random);
        let dropped_after = random
            .one_in(6)
            .then(|| random.time_below(LONGEST_ACTIVITY));
        async move {
            let _step = Step::begin(format_args!(
                "{activity:?} on {} with {interference:?}, dropped after {dropped_after:?}",
                vm.id()
            ));
            let running = activity.run(vm, kind, &mut random);
            let done = match dropped_after {
                Some(time) => tokio::time::timeout(time, running).await.unwrap_or(Ok(())),
                None => running.await,
            };
            match done {
                Err(error) if interference.explains(&error, activity) => Ok(()),
                done => done.with_context(|| format!("with {interference:?}")),
            }
        }
    });
    let activities: Vec<_> = activities.collect();
    let all = join_all(activities);
    tokio::pin!(all);
    let mut happened = Ok(());
    let done = tokio::select! {
        done = &mut all => done,
        outcome = interference.happen(vm, &mut own) => {
            happened = outcome;
            all.await
        }
    };
    happened.with_context(|| format!("{interference:?}"))?;
    if interference == Interference::Pause {
        // The activities may have ended during a pause.
        vm.resume().await?;
    }
    for outcome in done {
        outcome?;
    }
    Ok(())
}

/// Ends a VM, and checks how it says that it has ended.
pub(super) async fn end(vm: Vm, interference: Interference, random: &mut Random) -> Result<()> {
    let _step = Step::begin(format_args!(
        "the end of {} after {interference:?}",
        vm.id()
    ));
    if interference.ends_vm() {
        // It may not have happened yet.
        let _ = vm.kill().await;
        let reason = vm.ended().await.reason;
        ensure!(
            matches!(reason, End::Died | End::Killed),
            "it ended: {reason}"
        );
        return Ok(());
    }
    ensure!(
        vm.exec(["true"]).await?.success(),
        "the VM does not work any more"
    );
    match random.below(3) {
        0 => {
            vm.stop().await?;
            let end = vm.ended().await;
            ensure!(
                end.kind() == EndKind::Clean,
                "a VM that was stopped ended: {end}"
            );
        }
        1 => {
            vm.kill().await?;
            let end = vm.ended().await;
            ensure!(
                end.reason == End::Killed,
                "a VM that was killed ended: {end}"
            );
        }
        _ => drop(vm),
    }
    Ok(())
}
