use std::{fmt, str::FromStr};

/// Which tools a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// `vm_run` only: one command in a new VM.
    VmRun,
    /// What most chats need: workspaces with commands and files, without network, secrets,
    /// services and shells.
    WorkspaceCore,
    /// All tools.
    #[default]
    WorkspaceFull,
}

impl Profile {
    /// All profiles, from the narrowest to the widest.
    pub const ALL: [Self; 3] = [Self::VmRun, Self::WorkspaceCore, Self::WorkspaceFull];

    /// Returns its name, as in `vmcell mcp serve --profile`.
    pub fn name(self) -> &'static str {
        match self {
            Self::VmRun => "vm-run",
            Self::WorkspaceCore => "workspace-core",
            Self::WorkspaceFull => "workspace-full",
        }
    }

    /// Returns whether it has a tool.
    pub(crate) fn has(self, tool: &str) -> bool {
        match self {
            Self::VmRun => tool == VM_RUN,
            Self::WorkspaceCore => tool == VM_RUN || CORE.contains(&tool),
            Self::WorkspaceFull => true,
        }
    }

    /// Returns which fields of a tool's input it leaves out.
    pub(crate) fn omitted_fields(self, tool: &str) -> &'static [&'static str] {
        match (self, tool) {
            (Self::WorkspaceCore, "workspace_create") => &["network_policy", "secrets"],
            (Self::WorkspaceCore, "workspace_exec") => &["secret_env"],
            _ => &[],
        }
    }
}

const VM_RUN: &str = "vm_run";

const CORE: [&str; 15] = [
    "workspace_create",
    "workspace_list",
    "workspace_update",
    "workspace_status",
    "workspace_sync_push",
    "workspace_exec",
    "workspace_logs",
    "workspace_file_list",
    "workspace_file_read",
    "workspace_file_write",
    "workspace_patch_apply",
    "workspace_diff",
    "workspace_export",
    "workspace_reset",
    "workspace_delete",
];

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProfile;

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("choose vm-run, workspace-core or workspace-full")
    }
}

impl std::error::Error for UnknownProfile {}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let profile = Self::ALL.into_iter().find(|it| it.name() == name);
        profile.ok_or(UnknownProfile)
    }
}
