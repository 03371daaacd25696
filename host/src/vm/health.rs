use std::time::Duration;

use super::VmState;
use crate::{
    acceleration::AccelerationChoice, backend::RejectedBackend, confinement::LayerStatus,
    link::LinkChoice, quotas::QuotaUsage,
};

/// The health of a VM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// Its state.
    pub state: VmState,
    /// How long the agent took to answer. `None` if it did not.
    pub round_trip: Option<Duration>,
    /// The name of the backend that runs the VM, for example `qemu`.
    pub backend: String,
    /// The backends with a higher priority, and why they were not chosen. `None`
    /// in programs that do not own the VM.
    pub rejected_backends: Option<Vec<RejectedBackend>>,
    /// How the VMM is confined: each way, and whether it is in effect. `None` in programs that
    /// do not own the VM; empty if the backend has no VMM, or does not confine it.
    pub confinement: Option<Vec<LayerStatus>>,
    /// Its quotas, and how much of them it has used. `None` if the program that owns the VM does
    /// not say.
    pub quotas: Option<QuotaUsage>,
    /// What every user of the VM must know.
    pub warnings: Vec<String>,
    /// How its instructions are executed, and why. `None` if no VM isolates it
    /// and it runs on the host's kernel.
    pub acceleration: Option<AccelerationChoice>,
    /// What carries the bytes between this program and the agent, and why.
    pub link: LinkChoice,
    /// The name of the agent's build.
    pub agent: String,
}

impl Health {
    /// Returns whether it runs and its agent answers.
    pub fn is_healthy(&self) -> bool {
        self.state == VmState::Running && self.round_trip.is_some()
    }
}
