//! Environments that VMs and workspaces boot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell_rootfs::catalog::EnvironmentKind;

use crate::{call::Call, environment, failure::Failure, hints::Hints, tool::Tool};

pub(super) struct VmListEnvironments;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Environments {
    environments: Vec<Listed>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    name: String,
    description: String,
    /// Whether it was built already. Otherwise its first use takes longer.
    installed: bool,
}

impl Tool for VmListEnvironments {
    const NAME: &'static str = "vm_list_environments";
    const TITLE: &'static str = "List environments";
    const DESCRIPTION: &'static str = "List the environments that VMs and workspaces can boot.";
    const HINTS: Hints = Hints::READS;
    type Input = Nothing;
    type Output = Environments;

    async fn run(_call: Call, _input: Nothing) -> Result<Environments, Failure> {
        let listed = environment::list().await?.into_iter().map(|entry| Listed {
            name: entry.name,
            // The source of others can be a path of the host.
            description: match entry.kind {
                EnvironmentKind::Recipe => entry.source,
                EnvironmentKind::Built => "Built from a Dockerfile".to_owned(),
                _ => "Made from the image of a container".to_owned(),
            },
            installed: entry.image.is_some(),
        });
        Ok(Environments {
            environments: listed.collect(),
        })
    }
}
