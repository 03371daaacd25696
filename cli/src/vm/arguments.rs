use clap::{Args, Subcommand};

use crate::kept_vm_options::{CommandArguments, NewOptions};

const EXAMPLES: &str = "\
Examples:
  id=$(vmcell vm create debian --id-only)
  vmcell vm start $id
  vmcell vm exec $id -- python3 -c 'print(2 ** 64)'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VmArguments {
    #[command(subcommand)]
    pub(super) command: VmCommand,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum VmCommand {
    /// Create a VM for one command. It is not started.
    Create(Box<CreateArguments>),
    /// List these VMs, those that were used last first.
    List,
    /// Show one VM.
    Status(VmId),
    /// Start a VM.
    Start(VmId),
    /// Run a command in a VM that is started, then delete the VM, however the
    /// command has ended.
    Exec(Box<ExecArguments>),
    /// Stop a VM. Its disk is kept.
    Stop(VmId),
    /// Delete a VM with its disk. If it runs, it is ended at once.
    Delete(VmId),
    /// Show what the programs of a VM may reach, and what was denied.
    Network(VmId),
    /// Delete the VMs whose time is over, and those whose `exec` was killed
    /// before it could delete them.
    ReapExpired,
}

impl VmArguments {
    /// Returns whether the exit code says how a command of the user ended.
    pub(crate) fn runs_a_command(&self) -> bool {
        matches!(self.command, VmCommand::Exec(_))
    }
}

/// The VM that a command is about.
#[derive(Debug, Args)]
pub(super) struct VmId {
    /// ID of the VM, as listed by `vmcell vm list`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Debug, Args)]
pub(super) struct CreateArguments {
    /// ID of the VM: lower-case letters, digits and `-`. Default: `vm-` and
    /// twelve random letters.
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) options: NewOptions,
    /// Delete it after so many seconds; 0 is never.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(super) ttl_seconds: u64,
    /// Print only the ID of the VM.
    #[arg(long, conflicts_with = "json")]
    pub(super) id_only: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExecArguments {
    #[command(flatten)]
    pub(super) vm: VmId,
    #[command(flatten)]
    pub(super) command: CommandArguments,
}
