use std::time::Duration;

use super::ServiceTrouble;
use crate::{
    process::{Exit, KeptOutput},
    session::{ServicePhase as ToldPhase, ServiceState},
};

/// How a service is. No value of its environment is part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceStatus {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub phase: ServicePhase,
    /// For how long it has been doing that, by the guest's clock.
    pub since: Duration,
    /// The number that the guest's kernel gave its process, while there is one.
    pub pid: Option<u32>,
    /// How often it was started again without being asked to, since somebody
    /// last started it.
    pub restarts: u32,
    /// How its last run ended, if one did.
    pub last_exit: Option<Exit>,
    /// Which bytes of its log can still be read.
    pub log: KeptOutput,
}

/// What a service does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServicePhase {
    /// It is started when all that it needs is ready.
    Waiting {
        /// What it waits for now.
        need: String,
    },
    /// It runs and is not ready yet.
    Starting,
    /// Its probe has succeeded.
    Ready,
    /// It runs, and there is no probe.
    Running,
    /// It has ended and will be started again.
    Restarting,
    /// It was asked to end.
    Stopping,
    /// It has ended as it should.
    Stopped,
    /// It has ended as it should not.
    Failed(ServiceTrouble),
}

/// How many services there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceCounts {
    /// All of them.
    pub all: usize,
    /// Those that are not [over](ServicePhase::is_over).
    pub running: usize,
}

impl ServicePhase {
    /// A name for the phase that never changes, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
        }
    }

    /// Whether it does its work: it is ready, or runs and has no probe.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }

    /// Whether it stays so unless somebody starts it.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }
}

impl ServiceStatus {
    pub(super) fn from_guest(state: ServiceState) -> Self {
        Self {
            name: state.name,
            phase: match state.phase {
                ToldPhase::Waiting(need) => ServicePhase::Waiting { need },
                ToldPhase::Starting => ServicePhase::Starting,
                ToldPhase::Ready => ServicePhase::Ready,
                ToldPhase::Running => ServicePhase::Running,
                ToldPhase::Restarting => ServicePhase::Restarting,
                ToldPhase::Stopping => ServicePhase::Stopping,
                ToldPhase::Stopped => ServicePhase::Stopped,
                ToldPhase::Failed(trouble) => {
                    ServicePhase::Failed(ServiceTrouble::from_guest(trouble))
                }
            },
            since: Duration::from_millis(state.since_ms),
            pid: state.pid,
            restarts: state.restarts,
            last_exit: state.last_exit.as_ref().map(Exit::from_wire),
            log: KeptOutput {
                start: state.log.start,
                end: state.log.end,
            },
        }
    }
}

impl ServiceCounts {
    /// Those of a list.
    pub fn of(list: &[ServiceStatus]) -> Self {
        let runs = |status: &&ServiceStatus| !status.phase.is_over();
        Self {
            all: list.len(),
            running: list.iter().filter(runs).count(),
        }
    }
}
