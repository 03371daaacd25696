use std::time::Duration;

use super::VmState;
use crate::{acceleration::AccelerationChoice, backend::RejectedBackend, link::LinkChoice};

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
    /// The backends that would have been chosen before it, and why they were
    /// not. Only the program that owns the VM knows.
    pub rejected_backends: Vec<RejectedBackend>,
    /// What everybody who uses the VM must know.
    pub warnings: Vec<String>,
    /// How its instructions are executed, and why so. None: there is no VM, and
    /// the host's own kernel runs them.
    pub acceleration: Option<AccelerationChoice>,
    /// What carries the bytes between this program and the agent, and why that.
    pub link: LinkChoice,
    /// What the agent calls itself.
    pub agent: String,
}

impl Health {
    /// Whether it runs and its agent answers.
    pub fn is_healthy(&self) -> bool {
        self.state == VmState::Running && self.round_trip.is_some()
    }
}
