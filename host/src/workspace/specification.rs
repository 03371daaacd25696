use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    link::LinkKind,
    network::NetworkPolicy,
    process::Command,
    quotas::Quotas,
    vm::{Vm, VmBuilder},
};

/// What a workspace is made of. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Specification {
    /// What its users call the image.
    pub(super) environment: String,
    /// Where the image is, or was when the workspace was created.
    pub(super) image: PathBuf,
    pub(super) vcpus: u32,
    pub(super) memory_mib: u32,
    /// The size of the disk, if it is another one than that of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) disk_mib: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) variables: BTreeMap<String, String>,
    pub(super) network: NetworkPolicy,
    /// What its VM may use of this machine.
    #[serde(default, skip_serializing_if = "Quotas::is_unset")]
    pub(super) quotas: Quotas,
    /// How long it may be unused before it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idle_seconds: Option<u64>,
}

/// The folder of a guest that a workspace is about.
pub(super) const WORKSPACE: &str = "/workspace";

impl Specification {
    /// Returns the VM of a workspace, but for its id and its disk.
    pub(super) fn vm(&self) -> VmBuilder {
        let vm = Vm::builder()
            .vcpus(self.vcpus)
            .memory_mib(self.memory_mib)
            .network(self.network.clone())
            .quotas(self.quotas)
            // Over the other links, a VMM cannot go on in a new layer or save the VM.
            .link(LinkKind::Serial);
        match self.disk_mib {
            Some(mib) => vm.disk_mib(mib),
            None => vm,
        }
    }

    /// Gives a command what the workspace has for all of them, unless it has its own.
    pub(super) fn apply_to(&self, command: Command) -> Command {
        command.with_defaults(self.user.as_deref(), &self.variables, WORKSPACE)
    }
}
