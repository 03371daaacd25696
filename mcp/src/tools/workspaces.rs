//! Workspaces: VMs that keep their files.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{
    secret::Secret,
    workspace::{
        BASELINE, NewWorkspace, SeedProgress, WorkspaceInfo, WorkspaceSeed,
        WorkspaceUpdate as Update,
    },
};
use vmcell_tree::Date;

use super::new_vm::{
    PolicyName, check_size, default_environment, default_mem_mib, default_vcpu_count,
};
use crate::{call::Call, environment, failure::Failure, hints::Hints, tool::Tool};

/// The workspace that a call is about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceId {
    /// Its id or name.
    pub(super) workspace_id: String,
}

/// A workspace as it is listed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Summary {
    workspace_id: String,
    name: Option<String>,
    labels: BTreeMap<String, String>,
    environment: String,
    /// stopped, running or paused.
    state: &'static str,
    created_at: String,
    last_activity_at: String,
    expires_at: Option<String>,
    command_count: u64,
    service_count: Option<usize>,
    running_service_count: Option<usize>,
}

/// Everything about a workspace.
#[derive(Serialize, JsonSchema)]
pub(super) struct Status {
    #[serde(flatten)]
    summary: Summary,
    stop_reason: Option<String>,
    vcpu_count: u32,
    mem_mib: u32,
    network_policy: &'static str,
    workspace_seed: Seed,
    /// The secrets that it keeps, without their values.
    secrets: Vec<KeptSecret>,
    reset_count: u64,
    last_reset_at: Option<String>,
}

/// How /workspace was filled.
#[derive(Serialize, JsonSchema)]
struct Seed {
    /// empty, directory or archive.
    mode: &'static str,
    entries: u64,
    bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct KeptSecret {
    name: String,
    source: String,
}

/// Returns a time as text.
pub(super) fn date(time: SystemTime) -> String {
    Date::of(time).rfc3339()
}

impl From<WorkspaceInfo> for Summary {
    fn from(info: WorkspaceInfo) -> Self {
        Self {
            workspace_id: info.id,
            name: info.name,
            labels: info.labels,
            environment: info.environment,
            state: info.state.as_str(),
            created_at: date(info.created),
            last_activity_at: date(info.last_activity),
            expires_at: info.expires.map(date),
            command_count: info.command_count,
            service_count: info.services.map(|services| services.total),
            running_service_count: info.services.map(|services| services.running),
        }
    }
}

impl From<WorkspaceInfo> for Status {
    fn from(info: WorkspaceInfo) -> Self {
        let secrets = info.secrets.iter().map(|secret| KeptSecret {
            name: secret.name.clone(),
            source: secret.source.name().to_owned(),
        });
        Self {
            stop_reason: info.stop_reason.clone(),
            vcpu_count: info.vcpus,
            mem_mib: info.memory_mib,
            network_policy: info.network.name(),
            workspace_seed: seed(&info.seed),
            secrets: secrets.collect(),
            reset_count: info.reset_count,
            last_reset_at: info.last_reset.map(date),
            summary: info.into(),
        }
    }
}

fn seed(seed: &WorkspaceSeed) -> Seed {
    Seed {
        mode: match &seed.path {
            None => "empty",
            Some(_) if seed.is_archive => "archive",
            Some(_) => "directory",
        },
        entries: seed.entries,
        bytes: seed.bytes,
    }
}

pub(super) struct WorkspaceCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateInput {
    /// `base` (small, fast), `debian` (apt, curl, Python), or `debian-dev` (compilers, git, npm).
    #[serde(default = "default_environment")]
    environment: String,
    /// A name for people. It must not be in use.
    name: Option<String>,
    /// Labels for people.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default = "default_vcpu_count")]
    vcpu_count: u32,
    #[serde(default = "default_mem_mib")]
    mem_mib: u32,
    /// After this time it is deleted; 0 is never.
    #[serde(default)]
    ttl_seconds: u64,
    /// Folder or .tar, .tar.gz or .tgz of the host to fill /workspace with, if the server may
    /// read it. workspace_sync_push can send contents instead.
    seed_path: Option<String>,
    /// What programs may reach: nothing, public hosts, or these and ports for the host.
    #[serde(default)]
    network_policy: PolicyName,
    /// Secrets that the workspace keeps outside of its disk, for secret_env.
    #[serde(default)]
    secrets: Vec<NewSecret>,
    /// Has no effect: workspaces are never run on the host's kernel.
    #[serde(default)]
    #[allow(dead_code)]
    allow_host_compat: bool,
}

/// A secret: its value, or a file of the host with it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSecret {
    name: String,
    value: Option<String>,
    file_path: Option<String>,
}

impl Tool for WorkspaceCreate {
    const NAME: &'static str = "workspace_create";
    const TITLE: &'static str = "Create a workspace";
    const DESCRIPTION: &'static str = "\
Create a workspace: a microVM that keeps its files in /workspace and goes on between calls. It is \
started. Use its workspace_id with workspace_exec, workspace_file_write and the other tools, and \
delete it with workspace_delete.";
    const HINTS: Hints = Hints::ADDS;
    type Input = CreateInput;
    type Output = Status;

    async fn run(call: Call, input: CreateInput) -> Result<Status, Failure> {
        check_size(input.vcpu_count, input.mem_mib)?;
        let seed = input.seed_path.as_deref();
        let seed = seed
            .map(|path| call.shared.paths.existing(path))
            .transpose()?;
        let secrets = input.secrets.into_iter().map(|secret| secret.load(&call));
        let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
        let found = environment::find(&input.environment, call.progress.clone()).await?;
        let mut new = found
            .new_workspace(&input.environment)
            .vcpus(input.vcpu_count)
            .memory_mib(input.mem_mib)
            .lifetime(Duration::from_secs(input.ttl_seconds))
            .network(input.network_policy.policy());
        if let Some(name) = input.name {
            new = new.name(name);
        }
        for (key, value) in input.labels {
            new = new.label(key, value);
        }
        if let Some(path) = seed {
            new = new.seed(path);
        }
        let new = secrets.iter().fold(new, NewWorkspace::secret);
        call.progress.set("creating the workspace");
        let progress = call.progress.clone();
        let on_seed = move |copied: SeedProgress| progress.set_copied(copied.entries, copied.bytes);
        let workspaces = &call.shared.workspaces;
        let workspace = workspaces.create_with_progress(new, on_seed).await?;
        Ok(workspace.info().await?.into())
    }
}

impl NewSecret {
    fn load(self, call: &Call) -> Result<Secret, Failure> {
        Ok(match (self.value, self.file_path) {
            (Some(value), None) => Secret::new(self.name, value)?,
            (None, Some(path)) => {
                let path = call.shared.paths.existing(&path)?;
                Secret::from_file(self.name, path)?
            }
            _ => {
                let message = format!("secrets: {:?} needs value or file_path", self.name);
                return Err(Failure::invalid(message));
            }
        })
    }
}

pub(super) struct WorkspaceList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {}

#[derive(Serialize, JsonSchema)]
pub(super) struct List {
    workspaces: Vec<Summary>,
}

impl Tool for WorkspaceList {
    const NAME: &'static str = "workspace_list";
    const TITLE: &'static str = "List workspaces";
    const DESCRIPTION: &'static str = "List all workspaces, those that were used last first.";
    const HINTS: Hints = Hints::READS;
    type Input = ListInput;
    type Output = List;

    async fn run(call: Call, _input: ListInput) -> Result<List, Failure> {
        let list = call.shared.workspaces.list().await?;
        Ok(List {
            workspaces: list.into_iter().map(Summary::from).collect(),
        })
    }
}

pub(super) struct WorkspaceStatus;

impl Tool for WorkspaceStatus {
    const NAME: &'static str = "workspace_status";
    const TITLE: &'static str = "Show a workspace";
    const DESCRIPTION: &'static str = "Return the state and the settings of a workspace.";
    const HINTS: Hints = Hints::READS;
    type Input = WorkspaceId;
    type Output = Status;

    async fn run(call: Call, input: WorkspaceId) -> Result<Status, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        Ok(workspace.info().await?.into())
    }
}

pub(super) struct WorkspaceUpdate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateInput {
    workspace_id: String,
    /// The new name.
    name: Option<String>,
    /// Remove its name.
    #[serde(default)]
    clear_name: bool,
    /// Labels to add or change.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Keys of labels to remove.
    #[serde(default)]
    clear_labels: Vec<String>,
}

impl Tool for WorkspaceUpdate {
    const NAME: &'static str = "workspace_update";
    const TITLE: &'static str = "Rename or label a workspace";
    const DESCRIPTION: &'static str = "\
Change the name and the labels of a workspace, and nothing else. Its workspace_id stays.";
    const HINTS: Hints = Hints::SETS;
    type Input = UpdateInput;
    type Output = Status;

    async fn run(call: Call, input: UpdateInput) -> Result<Status, Failure> {
        let changes_labels = !input.labels.is_empty() || !input.clear_labels.is_empty();
        if input.name.is_none() && !input.clear_name && !changes_labels {
            return Err(Failure::invalid(
                "nothing to change: give name, clear_name, labels or clear_labels",
            ));
        }
        let mut update = Update::new();
        if let Some(name) = input.name {
            update = update.name(name);
        }
        if input.clear_name {
            update = update.clear_name();
        }
        for key in input.clear_labels {
            update = update.clear_label(key);
        }
        for (key, value) in input.labels {
            update = update.label(key, value);
        }
        let workspace = call.workspace(&input.workspace_id).await?;
        Ok(workspace.update(update).await?.into())
    }
}

pub(super) struct WorkspaceStart;

impl Tool for WorkspaceStart {
    const NAME: &'static str = "workspace_start";
    const TITLE: &'static str = "Start a workspace";
    const DESCRIPTION: &'static str =
        "Start a stopped workspace, or resume a paused one. Its files are as they were.";
    const HINTS: Hints = Hints::SETS;
    type Input = WorkspaceId;
    type Output = Status;

    async fn run(call: Call, input: WorkspaceId) -> Result<Status, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        workspace.start().await?;
        Ok(workspace.info().await?.into())
    }
}

pub(super) struct WorkspaceStop;

impl Tool for WorkspaceStop {
    const NAME: &'static str = "workspace_stop";
    const TITLE: &'static str = "Stop a workspace";
    const DESCRIPTION: &'static str = "\
Stop a workspace. Its files, snapshots and history are kept, its processes are not.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = WorkspaceId;
    type Output = Status;

    async fn run(call: Call, input: WorkspaceId) -> Result<Status, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        workspace.stop().await?;
        Ok(workspace.info().await?.into())
    }
}

pub(super) struct WorkspaceReset;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResetInput {
    workspace_id: String,
    /// The snapshot to go back to: `baseline` is the workspace as it was created.
    #[serde(default = "baseline")]
    snapshot: String,
}

pub(super) fn baseline() -> String {
    BASELINE.to_owned()
}

impl Tool for WorkspaceReset {
    const NAME: &'static str = "workspace_reset";
    const TITLE: &'static str = "Reset a workspace";
    const DESCRIPTION: &'static str = "\
Make a workspace again as it was created, or as it was at a snapshot. All later changes of its \
disk, its processes and its history are lost.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = ResetInput;
    type Output = Status;

    async fn run(call: Call, input: ResetInput) -> Result<Status, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        Ok(workspace.reset(&input.snapshot).await?.into())
    }
}

pub(super) struct WorkspaceDelete;

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    workspace_id: String,
    deleted: bool,
}

impl Tool for WorkspaceDelete {
    const NAME: &'static str = "workspace_delete";
    const TITLE: &'static str = "Delete a workspace";
    const DESCRIPTION: &'static str =
        "Delete a workspace with its files, snapshots, secrets and history.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = WorkspaceId;
    type Output = Deleted;

    async fn run(call: Call, input: WorkspaceId) -> Result<Deleted, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        let workspace_id = workspace.id().to_owned();
        workspace.delete().await?;
        call.shared.forget(&workspace_id);
        Ok(Deleted {
            workspace_id,
            deleted: true,
        })
    }
}
