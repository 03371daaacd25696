//! What new VMs and workspaces have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::network::NetworkPolicy;

use crate::failure::Failure;

/// What programs may reach.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(super) enum PolicyName {
    #[default]
    #[serde(rename = "off")]
    Off,
    #[serde(rename = "egress")]
    Egress,
    #[serde(rename = "egress+published-ports")]
    EgressAndPublishedPorts,
}

impl PolicyName {
    pub(super) fn policy(self) -> NetworkPolicy {
        match self {
            Self::Off => NetworkPolicy::off(),
            Self::Egress => NetworkPolicy::public(),
            Self::EgressAndPublishedPorts => NetworkPolicy::public().published_ports(true),
        }
    }
}

pub(super) fn default_environment() -> String {
    crate::environment::DEFAULT.to_owned()
}

pub(super) fn default_vcpu_count() -> u32 {
    1
}

pub(super) fn default_mem_mib() -> u32 {
    1024
}

/// The limits of what a model may ask for.
const MAX_VCPUS: u32 = 32;
const MIN_MEM_MIB: u32 = 64;
const MAX_MEM_MIB: u32 = 256 * 1024;

/// Checks the size of a VM.
pub(super) fn check_size(vcpus: u32, mem_mib: u32) -> Result<(), Failure> {
    if !(1..=MAX_VCPUS).contains(&vcpus) {
        return Err(Failure::invalid(format!(
            "vcpu_count: {vcpus} is not from 1 to {MAX_VCPUS}"
        )));
    }
    if !(MIN_MEM_MIB..=MAX_MEM_MIB).contains(&mem_mib) {
        return Err(Failure::invalid(format!(
            "mem_mib: {mem_mib} is not from {MIN_MEM_MIB} to {MAX_MEM_MIB}"
        )));
    }
    Ok(())
}
