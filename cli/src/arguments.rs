use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use vmcell::{ProcessSelector, Signal, port::PortMapping};
use vmcell_cli::options::manual::{CompletionsArguments, ManArguments};

use crate::{
    command::{CommandOptions, parse_seconds},
    demo::DemoArguments,
    env::EnvArguments,
    files::{
        CatArguments, CpArguments, DiffArguments, LsArguments, PatchArguments, PullArgument,
        StatArguments,
    },
    machine_options::MachineOptions,
    mcp::McpArguments,
    metrics::MetricsArguments,
    network::NetworkArguments,
    network_options::NetworkOptions,
    port::PublishArguments,
    process_selector,
    quota_options::QuotaOptions,
    receipt::ReceiptArguments,
    restore::RestoreArguments,
    screen::ScreenArguments,
    secret::SecretArguments,
    service::{HELP_HEADING, ServiceArguments, ServiceFlags},
    shell::ShellArguments,
    size_options::SizeOptions,
    snapshot::SnapshotArguments,
    template::TemplateArguments,
    terminate::TerminateArguments,
    tool::ToolArguments,
    top::TopArguments,
    vm::VmArguments,
    vm_source::SourceOptions,
    workspace::WorkspaceArguments,
};

/// Run untrusted work in microVMs.
#[derive(Debug, Parser)]
#[command(name = "vmcell", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Boot a VM, run a command in it, then end the VM.
    Run(RunArguments),
    /// Run a command in a running VM.
    Exec(ExecArguments),
    /// Open a terminal in a running VM, or in a new one.
    Shell(ShellArguments),
    /// Print the current screen of a terminal.
    Screen(ScreenArguments),
    /// List your VMs, or the processes of a VM.
    Ps(PsArguments),
    /// Print the output of a process that its VM has kept.
    Logs(LogsArguments),
    /// Shut down a VM: ask its processes to end and leave its disk clean.
    Stop(StopArguments),
    /// Kill a VM (shut it down if its disk is kept), or a process with all its
    /// descendants.
    Kill(KillArguments),
    /// Pause a VM: its processors stand still.
    Pause(PauseArguments),
    /// Resume a paused VM.
    Resume(ResumeArguments),
    /// Save a VM with its memory in a folder. The VM goes on.
    Snapshot(SnapshotArguments),
    /// Start a VM from a snapshot or a template, and keep it running.
    Restore(RestoreArguments),
    /// Manage templates: VMs that are prepared once and started many times.
    Template(TemplateArguments),
    /// Manage workspaces: VMs with a disk and snapshots, which go on when this
    /// program ends.
    Workspace(WorkspaceArguments),
    /// Manage VMs for one command: created, started, used once and deleted.
    Vm(VmArguments),
    /// Manage the secrets that a workspace keeps.
    Secret(SecretArguments),
    /// Delete all workspaces, and all VMs of `vmcell vm`, with their disks.
    Terminate(TerminateArguments),
    /// Run a workspace in the background. `vmcell workspace` starts it.
    #[command(hide = true)]
    KeepWorkspace,
    /// Manage the services of a VM.
    Service(ServiceArguments),
    /// Forward ports of 127.0.0.1 to a VM until interrupted.
    Publish(PublishArguments),
    /// Show what the programs of a VM may reach, and their open connections.
    Network(NetworkArguments),
    /// Show what a VM has used: processor, memory, disk, processes and link.
    Metrics(MetricsArguments),
    /// Show what your running VMs use now, each second.
    Top(TopArguments),
    /// Copy files into or out of a VM: SRC or DST is ID:PATH.
    Cp(CpArguments),
    /// List a directory in a VM.
    Ls(LsArguments),
    /// Print a file in a VM.
    Cat(CatArguments),
    /// Show the metadata of a file in a VM.
    Stat(StatArguments),
    /// Apply a unified diff to files in a VM, completely or not at all.
    Patch(PatchArguments),
    /// Print changes in a directory of a VM as a patch.
    Diff(DiffArguments),
    /// Serve language models with tools.
    Mcp(McpArguments),
    /// Run requests of language models, under a policy.
    Tool(ToolArguments),
    /// Show and verify what `vmcell tool` has recorded.
    Receipt(ReceiptArguments),
    /// Manage the environments that VMs boot: list them, and make them from images of containers.
    Env(EnvArguments),
    /// Print the version.
    Version,
    /// Check this machine, boot a VM and run `uname -a` in it.
    Demo(DemoArguments),
    /// Check whether this machine can run VMs.
    Doctor(DoctorArguments),
    /// Print a shell completion script.
    Completions(CompletionsArguments),
    /// Print the manual page, or write the pages of all commands.
    Man(ManArguments),
}

impl CliCommand {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(arguments) => arguments.options.json,
            Self::Exec(arguments) => arguments.options.json,
            Self::Screen(arguments) => arguments.json,
            Self::Ps(arguments) => arguments.json,
            Self::Logs(arguments) => arguments.json,
            Self::Stop(arguments) => arguments.json,
            Self::Pause(arguments) => arguments.json,
            Self::Resume(arguments) => arguments.json,
            Self::Snapshot(arguments) => arguments.json,
            Self::Restore(arguments) => arguments.json,
            Self::Template(arguments) => arguments.json(),
            Self::Workspace(arguments) => arguments.json,
            Self::Vm(arguments) => arguments.json,
            Self::Secret(arguments) => arguments.json,
            Self::Terminate(arguments) => arguments.json,
            Self::Service(arguments) => arguments.json(),
            Self::Publish(arguments) => arguments.json,
            Self::Network(arguments) => arguments.json(),
            Self::Metrics(arguments) => arguments.json,
            Self::Top(arguments) => arguments.json,
            Self::Cp(arguments) => arguments.json,
            Self::Ls(arguments) => arguments.json,
            Self::Stat(arguments) => arguments.json,
            Self::Patch(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::Demo(arguments) => arguments.json,
            Self::Doctor(arguments) => arguments.json,
            Self::Kill(arguments) => arguments.json,
            Self::Env(arguments) => arguments.json(),
            Self::Receipt(arguments) => arguments.json(),
            // All that it prints is JSON.
            Self::Tool(_) => true,
            Self::Shell(_)
            | Self::Cat(_)
            | Self::Version
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Mcp(_)
            | Self::KeepWorkspace => false,
        }
    }

    /// Returns whether it boots a VM that is not there yet. The others are about kept VMs,
    /// also about those whose time is over.
    pub(crate) fn boots_a_vm(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Shell(_) | Self::Restore(_) | Self::Template(_) | Self::Demo(_)
        )
    }

    /// Returns whether the exit code says how a command of the user ended.
    pub(crate) fn runs_a_command(&self) -> bool {
        match self {
            Self::Run(_) | Self::Exec(_) | Self::Shell(_) | Self::Template(_) => true,
            Self::Workspace(arguments) => arguments.runs_a_command(),
            Self::Vm(arguments) => arguments.runs_a_command(),
            _ => false,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  vmcell run -- uname -a
  vmcell run --push . --pull build=./build -- make
  vmcell run debian --allow deb.debian.org:80 -- apt-get update
  vmcell run --service 'web=httpd -f -p 8080' --ready tcp:8080 --publish 8080 -- sh -c 'read line'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Environment to boot: a name of `vmcell env list`, the path of an ext4 image, or where the
    /// image of a container is, as for `vmcell env import`.
    #[arg(value_name = "ENVIRONMENT", default_value = "base")]
    pub(crate) environment: OsString,
    /// Keep the VM's writes in this disk and boot from it again next time. It
    /// is created from ENVIRONMENT if it does not exist. Inspect it with
    /// `vmcell-disk`.
    #[arg(long, value_name = "FILE")]
    pub(crate) disk: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: SourceOptions,
    /// Name of the VM, by which your other programs find it.
    #[arg(long, value_name = "NAME", visible_alias = "name")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) size: SizeOptions,
    /// End the VM after this many seconds, with exit code 124.
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub(crate) ttl_seconds: Option<Duration>,
    /// Run the command on a terminal that is connected to yours.
    #[arg(long, short, conflicts_with_all = ["json", "stdin", "max_output_bytes", "detach"])]
    pub(crate) tty: bool,
    /// Run in the background: print the name of the VM when the command runs,
    /// and leave it running. `vmcell logs NAME main` prints its output,
    /// `vmcell stop NAME` ends it.
    #[arg(long, short, conflicts_with_all = ["json", "stdin", "max_output_bytes"])]
    pub(crate) detach: bool,
    /// Does nothing: standard input is connected unless `--stdin` says
    /// otherwise.
    #[arg(long, short)]
    interactive: bool,
    /// Does nothing: the VM's writes are discarded unless `--disk` keeps them.
    #[arg(long, conflicts_with = "disk")]
    rm: bool,
    /// Added by `--detach` to the program that runs in the background.
    #[arg(long, hide = true)]
    pub(crate) background: bool,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    #[command(flatten)]
    pub(crate) quotas: QuotaOptions,
    #[command(flatten)]
    pub(crate) network: NetworkOptions,
    /// Copy PATH into /workspace before the command runs, and run the command
    /// there. Of a directory, the contents are copied; a .tar, .tar.gz, .tgz or
    /// .tar.zst is unpacked.
    #[arg(long, value_name = "PATH")]
    pub(crate) push: Vec<PathBuf>,
    /// Copy PATH of the VM to HOST after the command, even if the command
    /// failed. A relative PATH starts at /workspace. No component of HOST may
    /// be a symbolic link.
    #[arg(long, value_name = "PATH=HOST", value_parser = PullArgument::parser())]
    pub(crate) pull: Vec<PullArgument>,
    /// Allow a PATH of --pull to be a symbolic link. The link is created on
    /// this machine with whatever target the VM has set.
    #[arg(long, requires = "pull")]
    pub(crate) allow_symlink: bool,
    #[command(flatten)]
    pub(crate) services: ServiceFlags,
    /// Forward port HOST of 127.0.0.1 to port GUEST of the VM's loopback
    /// interface, from when the services are ready until the VM ends. Without
    /// HOST, a free port is chosen and printed on standard error.
    #[arg(long, short, value_name = "[HOST:]GUEST", help_heading = HELP_HEADING)]
    pub(crate) publish: Vec<PortMapping>,
    #[command(flatten)]
    pub(crate) options: CommandOptions,
    /// Command and its arguments, run without a shell. Default: that of the image of a container.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Run the command in the background with empty standard input, and print
    /// its tag.
    #[arg(long, short, conflicts_with_all = ["stdin", "max_output_bytes"])]
    pub(crate) detach: bool,
    /// With --detach, print the ID of the process instead of its tag.
    #[arg(long, requires = "detach", conflicts_with = "json")]
    pub(crate) id_only: bool,
    #[command(flatten)]
    pub(crate) options: CommandOptions,
    /// Command and its arguments, run without a shell. Options of `exec` come
    /// before it.
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct PsArguments {
    /// List the processes of this VM.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Process: its tag, its ID in `vmcell ps ID`, or `pid:` and its PID in the
    /// guest.
    #[arg(value_name = "PROCESS", value_parser = process_selector::parse)]
    pub(crate) process: ProcessSelector,
    /// Keep printing until the process ends.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the output as one JSON object at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print how the VM ended as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PauseArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Refuse requests until the VM is resumed. By default they wait.
    #[arg(long)]
    pub(crate) refuse: bool,
    /// Print the state of the VM as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print the state of the VM as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KillArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Kill only this process and its descendants: its tag, its ID in `vmcell
    /// ps ID`, or `pid:` and its PID in the guest.
    #[arg(value_name = "PROCESS", value_parser = process_selector::parse)]
    pub(crate) process: Option<ProcessSelector>,
    /// Only send this signal, by name or number, to the process and its process
    /// group.
    #[arg(long, short, value_name = "SIGNAL", requires = "process")]
    pub(crate) signal: Option<Signal>,
    /// Kill the VM at once even if its disk is kept. As after a power cut,
    /// writes of the last two seconds may be lost.
    #[arg(long, conflicts_with = "process")]
    pub(crate) force: bool,
    /// Print how the VM or the process ended as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
