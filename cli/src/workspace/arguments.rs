use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{
    copy::{ExportArguments, SyncArguments},
    diff::DiffArguments,
    disk::DiskArguments,
    file::FileArguments,
    patch::PatchArguments,
    service::ServiceArguments,
    shell::ShellArguments,
    snapshot::{ForkArguments, ResetArguments, SnapshotArguments},
};
use crate::{
    kept_vm_options::{CommandArguments, NewOptions},
    secret::NewSecretOptions,
    start_options::{Variable, parse_variable},
};

const EXAMPLES: &str = "\
Examples:
  vmcell workspace create debian --name build --seed-path .
  vmcell workspace exec build -- make
  vmcell workspace stop build";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkspaceArguments {
    #[command(subcommand)]
    pub(super) command: WorkspaceCommand,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum WorkspaceCommand {
    /// Create a workspace and start it.
    Create(Box<CreateArguments>),
    /// List the workspaces, those that were used last first.
    List,
    /// Show one workspace.
    Status(WorkspaceId),
    /// Start a stopped workspace. Nothing of its disk changes.
    Start(WorkspaceId),
    /// Stop a workspace. Its disk and its snapshots are kept.
    Stop(WorkspaceId),
    /// Write the memory of a workspace to the disk. Its processes go on when it
    /// is resumed.
    Pause(WorkspaceId),
    /// Let the processes of a paused workspace go on.
    Resume(WorkspaceId),
    /// Delete a workspace with its disk and its snapshots.
    Delete(WorkspaceId),
    /// Change the name or the labels of a workspace.
    Update(UpdateArguments),
    /// Run a command in a workspace.
    Exec(Box<ExecArguments>),
    /// Copy files of this machine into a workspace.
    Sync(SyncArguments),
    /// List, read and write files below /workspace.
    File(FileArguments),
    /// Copy a file or directory below /workspace to this machine.
    Export(ExportArguments),
    /// Apply patches below /workspace.
    Patch(PatchArguments),
    /// Look into the disk of a stopped workspace, or copy it.
    Disk(DiskArguments),
    /// Print what has changed in /workspace since a snapshot, as a patch.
    Diff(DiffArguments),
    /// Print what was run in a workspace with `exec`, and the end of its output.
    Logs(WorkspaceId),
    /// Keep an unused workspace from being paused: it counts as used now.
    Touch(WorkspaceId),
    /// Delete the workspaces whose time is over.
    ReapExpired,
    /// Manage the snapshots of a workspace's disk.
    Snapshot(SnapshotArguments),
    /// Make the disk of a workspace what it was at a snapshot. Everything since,
    /// and all processes, are gone.
    Reset(ResetArguments),
    /// Create a workspace from a snapshot of another one. It is stopped, and
    /// shares the disk up to there.
    Fork(ForkArguments),
    /// Manage the services of a running workspace.
    Service(ServiceArguments),
    /// Manage shells on terminals of a running workspace.
    Shell(ShellArguments),
}

impl WorkspaceArguments {
    /// Returns whether the exit code says how a command of the user ended.
    pub(crate) fn runs_a_command(&self) -> bool {
        matches!(self.command, WorkspaceCommand::Exec(_))
    }
}

/// The workspace that a command is about.
#[derive(Debug, Args)]
pub(super) struct WorkspaceId {
    /// ID of the workspace, as listed by `vmcell workspace list`, or its name.
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Debug, Args)]
pub(super) struct CreateArguments {
    /// ID of the workspace: lower-case letters, digits and `-`. Default: `ws-`
    /// and twelve random letters.
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
    /// Name by which the workspace is found. No two of your workspaces have the
    /// same.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Label of the workspace. Labels have no effect.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub(super) labels: Vec<Label>,
    /// Fill /workspace with the contents of a directory, or of a .tar, .tar.gz,
    /// .tgz or .tar.zst archive.
    #[arg(long, value_name = "PATH")]
    pub(super) seed_path: Option<PathBuf>,
    /// Start it from a template of ENVIRONMENT, in a fraction of the time of a
    /// boot. The first one makes the template.
    #[arg(long)]
    pub(super) warm: bool,
    #[command(flatten)]
    pub(super) options: NewOptions,
    /// User and group that commands run as, unless they have another, by name
    /// or number. /workspace belongs to them. Default: root.
    #[arg(long, value_name = "USER[:GROUP]")]
    pub(super) user: Option<String>,
    /// Set an environment variable of all commands. It is written to the disk
    /// of this machine.
    #[arg(long = "env", short = 'e', value_name = "K=V", value_parser = parse_variable)]
    pub(super) variables: Vec<Variable>,
    #[command(flatten)]
    pub(super) secrets: NewSecretOptions,
    /// Pause it when nobody has used it for so many seconds; 0 is never. The
    /// next command resumes it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) idle_seconds: u64,
    /// Delete it after so many seconds; 0 is never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) ttl_seconds: u64,
    /// Print only the ID of the workspace.
    #[arg(long, conflicts_with = "json")]
    pub(super) id_only: bool,
}

#[derive(Debug, Args)]
pub(super) struct UpdateArguments {
    #[command(flatten)]
    pub(super) workspace: WorkspaceId,
    /// Set the name.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Remove the name.
    #[arg(long, conflicts_with = "name")]
    pub(super) clear_name: bool,
    /// Set a label.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub(super) labels: Vec<Label>,
    /// Remove a label.
    #[arg(long = "clear-label", value_name = "KEY")]
    pub(super) cleared_labels: Vec<String>,
    /// Remove all labels but those that `--label` sets.
    #[arg(long)]
    pub(super) clear_labels: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExecArguments {
    #[command(flatten)]
    pub(super) workspace: WorkspaceId,
    /// Fail if the workspace is paused. By default it is resumed first.
    #[arg(long)]
    pub(super) no_resume: bool,
    #[command(flatten)]
    pub(super) command: CommandArguments,
}

/// A label of a workspace.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) key: String,
    pub(super) value: String,
}

fn parse_label(text: &str) -> Result<Label, String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok(Label {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}
