//! The tools, by what they are about.

mod changes;
mod copies;
mod disk;
mod environments;
mod exec;
mod files;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod history;
mod new_vm;
mod services;
mod shells;
mod snapshots;
mod tool_run;
mod vm_run;
mod vms;
mod workspaces;

use vmcell::tool::Tool as PolicyTool;

use crate::{
    Profile,
    tool::{Definition, Tool},
};

/// Returns the tools of a profile, in the order in which clients list them.
pub(crate) fn of_profile(profile: Profile, tool: Option<&PolicyTool>) -> Vec<Definition> {
    let mut tools = Vec::new();
    add::<vm_run::VmRun>(profile, &mut tools);
    add::<environments::VmListEnvironments>(profile, &mut tools);
    add::<vms::VmCreate>(profile, &mut tools);
    add::<vms::VmStart>(profile, &mut tools);
    add::<vms::VmExec>(profile, &mut tools);
    add::<vms::VmStop>(profile, &mut tools);
    add::<vms::VmDelete>(profile, &mut tools);
    add::<vms::VmStatus>(profile, &mut tools);
    add::<vms::VmNetworkInfo>(profile, &mut tools);
    add::<vms::VmReapExpired>(profile, &mut tools);
    add::<workspaces::WorkspaceCreate>(profile, &mut tools);
    add::<workspaces::WorkspaceList>(profile, &mut tools);
    add::<workspaces::WorkspaceStatus>(profile, &mut tools);
    add::<workspaces::WorkspaceUpdate>(profile, &mut tools);
    add::<workspaces::WorkspaceStart>(profile, &mut tools);
    add::<workspaces::WorkspaceStop>(profile, &mut tools);
    add::<workspaces::WorkspaceReset>(profile, &mut tools);
    add::<workspaces::WorkspaceDelete>(profile, &mut tools);
    add::<copies::WorkspaceSyncPush>(profile, &mut tools);
    add::<copies::WorkspaceExport>(profile, &mut tools);
    add::<exec::WorkspaceExec>(profile, &mut tools);
    add::<history::WorkspaceLogs>(profile, &mut tools);
    add::<files::WorkspaceFileList>(profile, &mut tools);
    add::<files::WorkspaceFileRead>(profile, &mut tools);
    add::<files::WorkspaceFileWrite>(profile, &mut tools);
    add::<changes::WorkspacePatchApply>(profile, &mut tools);
    add::<changes::WorkspaceDiff>(profile, &mut tools);
    add::<disk::WorkspaceDiskExport>(profile, &mut tools);
    add::<disk::WorkspaceDiskList>(profile, &mut tools);
    add::<disk::WorkspaceDiskRead>(profile, &mut tools);
    add::<snapshots::SnapshotCreate>(profile, &mut tools);
    add::<snapshots::SnapshotList>(profile, &mut tools);
    add::<snapshots::SnapshotDelete>(profile, &mut tools);
    add::<services::ServiceStart>(profile, &mut tools);
    add::<services::ServiceList>(profile, &mut tools);
    add::<services::ServiceStatus>(profile, &mut tools);
    add::<services::ServiceLogs>(profile, &mut tools);
    add::<services::ServiceStop>(profile, &mut tools);
    add::<shells::ShellOpen>(profile, &mut tools);
    add::<shells::ShellRead>(profile, &mut tools);
    add::<shells::ShellWrite>(profile, &mut tools);
    add::<shells::ShellSignal>(profile, &mut tools);
    add::<shells::ShellClose>(profile, &mut tools);
    if let Some(tool) = tool {
        tools.push(tool_run::definition(tool.policy()));
    }
    tools
}

fn add<T: Tool>(profile: Profile, tools: &mut Vec<Definition>) {
    if profile.has(T::NAME) {
        tools.push(Definition::of::<T>(profile.omitted_fields(T::NAME)));
    }
}
