//! What a round consists of: each scenario starts what it needs and ends it again.

mod clones;
mod disks;
mod machine;
pub(crate) mod program;
mod templates;
mod workspaces;

use std::{pin::pin, time::Duration};

use anyhow::{Context as _, Result, bail};

use crate::{
    arguments::Kind,
    random::Random,
    setup::Setup,
    step::{self, Step},
};

pub(crate) use self::templates::prepare as prepare_template;

/// A part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    Machine,
    KilledProgram,
    Clones,
    Templates,
    Disk,
    Workspace,
}

/// Longer than any takes unless it hangs, with emulation on a busy machine.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(600);

impl Scenario {
    pub(crate) fn choose(kind: Kind, random: &mut Random) -> Self {
        match kind {
            Kind::Qemu => random.choose(&[
                Self::Machine,
                Self::Machine,
                Self::KilledProgram,
                Self::Clones,
                Self::Templates,
                Self::Disk,
                Self::Workspace,
                Self::Workspace,
            ]),
            Kind::Process => random.choose(&[
                Self::Machine,
                Self::Machine,
                Self::Machine,
                Self::KilledProgram,
            ]),
        }
    }

    pub(crate) async fn run(self, setup: &Setup, random: &mut Random) -> Result<()> {
        let run = async {
            let _step = Step::begin(format_args!("scenario {self:?}"));
            match self {
                Self::Machine => machine::use_and_end(setup, random).await,
                Self::KilledProgram => program::kill(setup, random).await,
                Self::Clones => clones::snapshot_and_restore(setup, random).await,
                Self::Templates => templates::start_many(setup, random).await,
                Self::Disk => disks::keep_and_read(setup, random).await,
                Self::Workspace => workspaces::live_through(setup, random).await,
            }
        };
        let mut run = pin!(run);
        match tokio::time::timeout(SCENARIO_TIMEOUT, run.as_mut()).await {
            Ok(done) => done.with_context(|| format!("scenario {self:?}")),
            // While it is not dropped, nor what it does.
            Err(_) => bail!("scenario {self:?} hangs: {}", step::running()),
        }
    }
}
