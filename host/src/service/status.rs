use std::time::Duration;

use vmcell_wire::service::{Phase, ServiceState, is_valid_name};

use super::{FailureReason, published::ServicePort};
use crate::{
    port::PortMapping,
    process::{Exit, KeptOutput},
};

/// The status of a service. It contains no values of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceStatus {
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: ServicePhase,
    /// How long it has been in this phase, by the guest's clock.
    pub since: Duration,
    /// The pid of its process in the guest, while there is one.
    pub pid: Option<u32>,
    /// How often it was restarted automatically since it was last started on
    /// request.
    pub restarts: u32,
    /// How its last run ended, if one did.
    pub last_exit: Option<Exit>,
    /// Which bytes of its log can still be read.
    pub log: KeptOutput,
    /// Its [published](super::ServiceSpec::publish) ports: those of this machine, and
    /// those of the guest.
    pub published: Vec<PortMapping>,
}

/// The phase of a service in its life cycle: see the [module](super).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServicePhase {
    /// It is started when all services that it needs are ready.
    Waiting {
        /// The service that it waits for now.
        need: String,
    },
    /// It runs and is not ready yet.
    Starting,
    /// Its probe has succeeded.
    Ready,
    /// It runs, and there is no probe.
    Running,
    /// It has ended and will be restarted.
    Restarting,
    /// It was asked to end.
    Stopping,
    /// It was stopped, or exited with code 0.
    Stopped,
    /// It failed.
    Failed(FailureReason),
}

/// The number of services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceCounts {
    /// All of them.
    pub total: usize,
    /// Those that are not [finished](ServicePhase::is_finished).
    pub running: usize,
}

impl ServicePhase {
    /// Returns a stable name of the phase, for machines.
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

    /// Returns why it is in this phase, for people, if the phase does not say
    /// it.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Waiting { need } => Some(format!("it waits for {need:?}")),
            Self::Failed(reason) => Some(reason.to_string()),
            _ => None,
        }
    }

    /// Returns whether it works: it is ready, or runs and has no probe.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }

    /// Returns whether it is stopped or failed, and stays so until it is
    /// started on request.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(_))
    }
}

impl ServiceStatus {
    /// Returns the status that an agent reports. `None` if a name in it is invalid,
    /// or if this version does not know the phase or the reason.
    pub(crate) fn from_wire(state: &ServiceState<'_>) -> Option<Self> {
        Some(Self {
            name: valid_name(state.name)?,
            phase: match state.phase {
                Phase::Waiting(need) => ServicePhase::Waiting {
                    need: valid_name(need)?,
                },
                Phase::Starting => ServicePhase::Starting,
                Phase::Ready => ServicePhase::Ready,
                Phase::Running => ServicePhase::Running,
                Phase::Restarting => ServicePhase::Restarting,
                Phase::Stopping => ServicePhase::Stopping,
                Phase::Stopped => ServicePhase::Stopped,
                Phase::Failed(reason) => ServicePhase::Failed(FailureReason::from_wire(&reason)?),
                _ => return None,
            },
            since: Duration::from_millis(state.since_ms),
            pid: state.pid,
            restarts: state.restarts,
            last_exit: state.last_exit.as_ref().map(Exit::from_wire),
            log: KeptOutput::from_wire(state.log),
            published: Vec::new(),
        })
    }

    /// Adds its published ports.
    pub(super) fn add_ports(&mut self, ports: &[ServicePort]) {
        let own = ports.iter().filter(|port| port.service == self.name);
        self.published = own.map(ServicePort::mapping).collect();
    }
}

/// Returns the name of a service, which may be printed.
pub(super) fn valid_name(name: &str) -> Option<String> {
    is_valid_name(name).then(|| name.to_owned())
}

impl ServiceCounts {
    /// Counts the services of a list.
    pub fn of(list: &[ServiceStatus]) -> Self {
        let runs = |status: &&ServiceStatus| !status.phase.is_finished();
        Self {
            total: list.len(),
            running: list.iter().filter(runs).count(),
        }
    }
}
