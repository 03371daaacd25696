//! What happens to a VM while it is used.

use std::{io, time::Duration};

use anyhow::Result;
use vmcell::Vm;

use crate::{
    activity::{Activity, VmEnded},
    arguments::Kind,
    processes,
    random::Random,
};

/// What happens to a VM while it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interference {
    None,
    /// Its link breaks, again and again.
    BreakLink,
    /// It stands still, again and again.
    Pause,
    /// A process that runs it is killed.
    KillVmm,
    /// Its owner kills it.
    Kill,
}

/// The longest time until it happens.
const LONGEST_DELAY: Duration = Duration::from_secs(8);

impl Interference {
    pub(crate) fn choose(kind: Kind, random: &mut Random) -> Self {
        let chosen = random.choose(&[
            Self::None,
            Self::None,
            Self::BreakLink,
            Self::BreakLink,
            Self::Pause,
            Self::KillVmm,
            Self::Kill,
        ]);
        match (kind, chosen) {
            (Kind::Process, Self::Pause) => Self::BreakLink,
            _ => chosen,
        }
    }

    /// Whether the VM ends by it.
    pub(crate) fn ends_vm(self) -> bool {
        matches!(self, Self::KillVmm | Self::Kill)
    }

    /// Whether an activity may fail with this error because of it. Wrong bytes are never
    /// explained.
    pub(crate) fn explains(self, error: &anyhow::Error, activity: Activity) -> bool {
        let mut causes = error.chain();
        match self {
            Self::None | Self::Pause => false,
            Self::BreakLink => {
                let is_lost = causes.any(|cause| match cause.downcast_ref::<vmcell::Error>() {
                    Some(error) => match activity {
                        // A client hears of it as a failure of its request.
                        Activity::Client => matches!(error.code(), "transport" | "file"),
                        _ => error.code() == "transport",
                    },
                    None => cause.is::<io::Error>(),
                });
                is_lost && !activity.survives_broken_links()
            }
            Self::KillVmm | Self::Kill => causes.any(|cause| {
                cause.is::<vmcell::Error>() || cause.is::<io::Error>() || cause.is::<VmEnded>()
            }),
        }
    }

    /// Lets it happen. Those that happen again and again do until this is dropped.
    pub(crate) async fn happen(self, vm: &Vm, random: &mut Random) -> Result<()> {
        loop {
            tokio::time::sleep(random.time_below(LONGEST_DELAY)).await;
            match self {
                Self::None => std::future::pending().await,
                Self::BreakLink => vm.reconnect()?,
                Self::Pause => {
                    vm.pause().await?;
                    tokio::time::sleep(random.time_below(Duration::from_secs(1))).await;
                    vm.resume().await?;
                }
                Self::KillVmm => {
                    let started = processes::started();
                    let mut of_vm = started
                        .iter()
                        .filter(|process| process.command_line().contains(vm.id()));
                    if let Some(process) = of_vm.next() {
                        process.kill();
                        return Ok(());
                    }
                    vm.kill().await?;
                    return Ok(());
                }
                Self::Kill => {
                    vm.kill().await?;
                    return Ok(());
                }
            }
        }
    }
}
