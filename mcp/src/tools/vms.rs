//! VMs for one command, in steps: create, start, exec.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{
    Error,
    network::{NetworkEvent, NetworkStatus, Verdict},
    workspace::{Workspace, WorkspaceError, WorkspaceInfo, WorkspaceState},
};

use super::{
    environments::Nothing,
    exec::{default_max_output, default_timeout},
    new_vm::{PolicyName, check_size, default_environment, default_mem_mib, default_vcpu_count},
    vm_run::default_ttl,
    workspaces::date,
};
use crate::{
    call::Call,
    command_line::CommandLine,
    environment,
    execution::{self, Execution, Limits},
    failure::Failure,
    hints::Hints,
    shared::Shared,
    tool::Tool,
};

/// The VM that a call is about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VmId {
    /// As vm_create has returned it.
    vm_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct VmInfo {
    vm_id: String,
    environment: String,
    /// stopped, running or paused.
    state: &'static str,
    stop_reason: Option<String>,
    vcpu_count: u32,
    mem_mib: u32,
    network_policy: &'static str,
    created_at: String,
    expires_at: Option<String>,
}

impl From<WorkspaceInfo> for VmInfo {
    fn from(info: WorkspaceInfo) -> Self {
        Self {
            state: info.state.as_str(),
            network_policy: info.network.name(),
            vm_id: info.id,
            environment: info.environment,
            stop_reason: info.stop_reason,
            vcpu_count: info.vcpus,
            mem_mib: info.memory_mib,
            created_at: date(info.created),
            expires_at: info.expires.map(date),
        }
    }
}

async fn find(call: &Call, id: &str) -> Result<Workspace, Failure> {
    match call.shared.vms.get(id).await {
        Err(Error::Workspace(WorkspaceError::NotFound { .. })) => {
            let failure = Failure::new("no-such-vm", format!("there is no VM {id:?}"));
            Err(failure.with_remedy("vm_create makes one; vm_exec deletes its VM at the end"))
        }
        found => Ok(found?),
    }
}

pub(super) struct VmCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateInput {
    /// `base` (small, fast), `debian`, or `debian-dev` (compilers, git, npm).
    #[serde(default = "default_environment")]
    environment: String,
    #[serde(default = "default_vcpu_count")]
    vcpu_count: u32,
    #[serde(default = "default_mem_mib")]
    mem_mib: u32,
    /// After this time it is deleted; 0 is never.
    #[serde(default = "default_ttl")]
    ttl_seconds: u64,
    /// Whether programs may reach public hosts.
    #[serde(default)]
    network: bool,
    /// Has no effect: VMs that are kept are never run on the host's kernel.
    #[serde(default)]
    #[allow(dead_code)]
    allow_host_compat: bool,
    /// Keep it when this session ends. Otherwise it is deleted then.
    #[serde(default)]
    keep: bool,
}

impl Tool for VmCreate {
    const NAME: &'static str = "vm_create";
    const TITLE: &'static str = "Create a VM";
    const DESCRIPTION: &'static str = "\
Create a microVM for one command. It is not started: vm_start starts it, vm_exec runs the command \
and deletes it. vm_run does all of that in one call.";
    const HINTS: Hints = Hints::ADDS;
    type Input = CreateInput;
    type Output = VmInfo;

    async fn run(call: Call, input: CreateInput) -> Result<VmInfo, Failure> {
        check_size(input.vcpu_count, input.mem_mib)?;
        let found = environment::find(&input.environment, call.progress.clone()).await?;
        let mut new = found
            .new_workspace(&input.environment)
            .vcpus(input.vcpu_count)
            .memory_mib(input.mem_mib)
            .lifetime(Duration::from_secs(input.ttl_seconds));
        if input.network {
            new = new.network(PolicyName::Egress.policy());
        }
        let vm = call.shared.vms.create_stopped(new).await?;
        if !input.keep {
            call.shared.add_temporary(vm.id());
        }
        Ok(vm.info().await?.into())
    }
}

pub(super) struct VmStart;

impl Tool for VmStart {
    const NAME: &'static str = "vm_start";
    const TITLE: &'static str = "Start a VM";
    const DESCRIPTION: &'static str = "Start a VM that vm_create has made.";
    const HINTS: Hints = Hints::SETS;
    type Input = VmId;
    type Output = VmInfo;

    async fn run(call: Call, input: VmId) -> Result<VmInfo, Failure> {
        let vm = find(&call, &input.vm_id).await?;
        vm.start().await?;
        Ok(vm.info().await?.into())
    }
}

pub(super) struct VmExec;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecInput {
    vm_id: String,
    /// A line for `sh -c`, or a program and its arguments.
    command: CommandLine,
    #[serde(default = "default_timeout")]
    timeout_seconds: f64,
    #[serde(default = "default_max_output")]
    max_output_bytes: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ExecOutput {
    vm_id: String,
    /// Whether the VM is gone.
    deleted: bool,
    #[serde(flatten)]
    execution: Execution,
}

impl Tool for VmExec {
    const NAME: &'static str = "vm_exec";
    const TITLE: &'static str = "Run the command of a VM";
    const DESCRIPTION: &'static str = "\
Run a command in a VM that vm_start has started, then delete the VM, however the command has ended.";
    const HINTS: Hints = Hints::RUNS;
    type Input = ExecInput;
    type Output = ExecOutput;

    async fn run(call: Call, input: ExecInput) -> Result<ExecOutput, Failure> {
        let limits = Limits::new(input.timeout_seconds, input.max_output_bytes)?;
        let command = limits.apply_to(input.command.into_command()?);
        let vm = find(&call, &input.vm_id).await?;
        let id = vm.id().to_owned();
        // One that was not started is left as it is.
        vm.vm().await?;
        // From here on it is deleted, also if the call is cancelled.
        let deletion = DeleteOnDrop(Some((call.shared.clone(), vm.clone())));
        let execution = match vm.exec_stream(command).await {
            Ok(stream) => execution::wait(&call, stream, limits).await,
            Err(error) => Err(error.into()),
        };
        deletion.disarm();
        let deleted = match vm.delete().await {
            Ok(()) | Err(Error::Workspace(WorkspaceError::NotFound { .. })) => true,
            Err(error) => {
                tracing::warn!(%id, %error, "cannot delete a VM");
                false
            }
        };
        if deleted {
            call.shared.remove_temporary(&id);
        }
        Ok(ExecOutput {
            vm_id: id,
            deleted,
            execution: execution?,
        })
    }
}

/// Deletes the VM of a call that is dropped.
struct DeleteOnDrop(Option<(Arc<Shared>, Workspace)>);

impl DeleteOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for DeleteOnDrop {
    fn drop(&mut self) {
        if let Some((shared, vm)) = self.0.take() {
            // If the server ends before that is done, it deletes the VM itself.
            shared.add_temporary(vm.id());
            tokio::spawn(async move {
                let id = vm.id().to_owned();
                match vm.delete().await {
                    Ok(()) => shared.remove_temporary(&id),
                    Err(error) => tracing::warn!(%id, %error, "cannot delete a VM"),
                }
            });
        }
    }
}

pub(super) struct VmStop;

impl Tool for VmStop {
    const NAME: &'static str = "vm_stop";
    const TITLE: &'static str = "Stop a VM";
    const DESCRIPTION: &'static str = "Stop a VM. Its disk is kept, its processes are not.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = VmId;
    type Output = VmInfo;

    async fn run(call: Call, input: VmId) -> Result<VmInfo, Failure> {
        let vm = find(&call, &input.vm_id).await?;
        vm.stop().await?;
        Ok(vm.info().await?.into())
    }
}

pub(super) struct VmDelete;

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    vm_id: String,
    deleted: bool,
}

impl Tool for VmDelete {
    const NAME: &'static str = "vm_delete";
    const TITLE: &'static str = "Delete a VM";
    const DESCRIPTION: &'static str = "Delete a VM with its disk. If it runs, it is ended at once.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = VmId;
    type Output = Deleted;

    async fn run(call: Call, input: VmId) -> Result<Deleted, Failure> {
        let vm = find(&call, &input.vm_id).await?;
        let vm_id = vm.id().to_owned();
        vm.delete().await?;
        call.shared.remove_temporary(&vm_id);
        Ok(Deleted {
            vm_id,
            deleted: true,
        })
    }
}

pub(super) struct VmStatus;

impl Tool for VmStatus {
    const NAME: &'static str = "vm_status";
    const TITLE: &'static str = "Show a VM";
    const DESCRIPTION: &'static str = "Return the state and the settings of a VM.";
    const HINTS: Hints = Hints::READS;
    type Input = VmId;
    type Output = VmInfo;

    async fn run(call: Call, input: VmId) -> Result<VmInfo, Failure> {
        Ok(find(&call, &input.vm_id).await?.info().await?.into())
    }
}

pub(super) struct VmNetworkInfo;

#[derive(Serialize, JsonSchema)]
pub(super) struct NetworkInfo {
    vm_id: String,
    state: &'static str,
    network_policy: String,
    /// Whether programs reach all public hosts.
    public: bool,
    published_ports: bool,
    allow: Vec<String>,
    deny: Vec<String>,
    /// How much was used, if it runs.
    usage: Option<Usage>,
}

#[derive(Serialize, JsonSchema)]
struct Usage {
    decisions: u64,
    denied: u64,
    sent_bytes: u64,
    received_bytes: u64,
    /// The last connections that were denied, and why.
    denials: Vec<String>,
}

impl Tool for VmNetworkInfo {
    const NAME: &'static str = "vm_network_info";
    const TITLE: &'static str = "Show the network of a VM";
    const DESCRIPTION: &'static str =
        "Return what the programs of a VM may reach, and what was denied.";
    const HINTS: Hints = Hints::READS;
    type Input = VmId;
    type Output = NetworkInfo;

    async fn run(call: Call, input: VmId) -> Result<NetworkInfo, Failure> {
        let found = find(&call, &input.vm_id).await?;
        let info = found.info().await?;
        let (status, usage) = match info.state {
            WorkspaceState::Running => {
                let vm = found.vm().await?;
                let events = vm.network_log().await?.take_recent();
                let status = vm.network_status().await?;
                let usage = Usage {
                    decisions: status.totals.decisions,
                    denied: status.totals.denials,
                    sent_bytes: status.totals.sent,
                    received_bytes: status.totals.received,
                    denials: events.iter().filter_map(denial).collect(),
                };
                (status, Some(usage))
            }
            _ => (NetworkStatus::from(&info.network), None),
        };
        Ok(NetworkInfo {
            vm_id: info.id,
            state: info.state.as_str(),
            network_policy: status.policy,
            public: status.public,
            published_ports: status.published_ports,
            allow: status.allow,
            deny: status.deny,
            usage,
        })
    }
}

fn denial(event: &NetworkEvent) -> Option<String> {
    match event {
        NetworkEvent::Decided(decision) => match &decision.verdict {
            verdict @ Verdict::Denied { .. } => Some(format!("{}: {verdict}", decision.wanted)),
            _ => None,
        },
        _ => None,
    }
}

pub(super) struct VmReapExpired;

#[derive(Serialize, JsonSchema)]
pub(super) struct Reaped {
    /// The ids of the VMs that were deleted.
    deleted: Vec<String>,
}

impl Tool for VmReapExpired {
    const NAME: &'static str = "vm_reap_expired";
    const TITLE: &'static str = "Delete expired VMs";
    const DESCRIPTION: &'static str = "Delete the VMs and workspaces whose time is over.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = Nothing;
    type Output = Reaped;

    async fn run(call: Call, _input: Nothing) -> Result<Reaped, Failure> {
        let mut deleted = call.shared.vms.reap_expired().await?;
        deleted.extend(call.shared.workspaces.reap_expired().await?);
        for id in &deleted {
            call.shared.forget(id);
            call.shared.remove_temporary(id);
        }
        Ok(Reaped { deleted })
    }
}
