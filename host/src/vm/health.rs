use std::time::Duration;

use super::VmState;
use crate::acceleration::AccelerationChoice;

/// How a VM is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// What it is doing.
    pub state: VmState,
    /// How long the agent took to answer; none if it did not.
    pub round_trip: Option<Duration>,
    /// What runs the VM: `qemu`.
    pub backend: String,
    /// How its instructions are executed, and why so.
    pub acceleration: AccelerationChoice,
    /// What the agent calls itself.
    pub agent: String,
}

impl Health {
    /// Whether it runs and its agent answers.
    pub fn is_healthy(&self) -> bool {
        self.state == VmState::Running && self.round_trip.is_some()
    }
}
