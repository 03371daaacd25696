//! Checks for VMMs that cannot emulate.

use super::Machine;
use crate::{
    acceleration::{Acceleration, AccelerationChoice},
    error::Error,
};

/// Checks that this machine has KVM, or returns why not.
pub(super) fn check_kvm() -> Result<(), String> {
    let choice = AccelerationChoice::detect();
    match choice.acceleration {
        Acceleration::Kvm => Ok(()),
        Acceleration::Tcg => Err(format!("it needs KVM: {}", choice.reason)),
    }
}

/// Rejects a machine that is not accelerated by KVM.
pub(super) fn require_kvm(machine: &Machine, backend: &str) -> Result<(), Error> {
    let choice = machine.acceleration();
    match choice.acceleration {
        Acceleration::Kvm => Ok(()),
        Acceleration::Tcg => Err(Error::Invalid(format!(
            "the backend {backend} cannot emulate ({}): choose the backend qemu",
            choice.reason
        ))),
    }
}
