//! What the fuzz target `mcp_arguments` calls.

use super::{environments, of_profile, vm_run, vms, workspaces};
use crate::{
    Profile,
    tool::{Definition, Tool},
};

/// Returns all tools. Those that boot VMs or build images only read their arguments.
pub(crate) fn without_vms() -> Vec<Definition> {
    let mut tools = of_profile(Profile::WorkspaceFull, None);
    for tool in &mut tools {
        let only_reading = match tool.name() {
            vm_run::VmRun::NAME => Definition::reading_only::<vm_run::VmRun>,
            vms::VmCreate::NAME => Definition::reading_only::<vms::VmCreate>,
            workspaces::WorkspaceCreate::NAME => {
                Definition::reading_only::<workspaces::WorkspaceCreate>
            }
            environments::VmListEnvironments::NAME => {
                Definition::reading_only::<environments::VmListEnvironments>
            }
            _ => continue,
        };
        *tool = only_reading(&[]);
    }
    tools
}
