use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::{
    command::parse_seconds, machine_options::MachineOptions, network_options::NetworkOptions,
    service::ServiceFlags, size_options::SizeOptions, snapshot::SaveOptions,
    start_options::StartOptions,
};

#[derive(Debug, Args)]
pub(crate) struct TemplateArguments {
    #[command(subcommand)]
    pub(super) command: TemplateCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum TemplateCommand {
    /// Boot a VM, prepare it, and save it under a name.
    Make(Box<MakeArguments>),
    /// Save a running VM, such as that of a workspace, under a name.
    Save(SaveArguments),
    /// List the templates.
    Ls(ListArguments),
    /// Show one template.
    Inspect(InspectArguments),
    /// Remove templates. VMs that were started from them go on.
    Rm(RemoveArguments),
    /// Remove templates that were not used for long, or whose image is gone.
    Prune(PruneArguments),
}

impl TemplateArguments {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            TemplateCommand::Make(arguments) => arguments.json,
            TemplateCommand::Save(arguments) => arguments.json,
            TemplateCommand::Ls(arguments) => arguments.json,
            TemplateCommand::Inspect(arguments) => arguments.json,
            TemplateCommand::Rm(arguments) => arguments.json,
            TemplateCommand::Prune(arguments) => arguments.json,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  vmcell template make tools base --push ./tools -- sh setup.sh
  vmcell run --from tools -- ls /workspace";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MakeArguments {
    /// Name of the template: letters, digits, `-`, `_` and `.`. A template with
    /// this name that was made differently is replaced.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Environment to boot: `base`, `debian`, or the path of an ext4 image.
    #[arg(value_name = "ENVIRONMENT", default_value = "base")]
    pub(super) environment: OsString,
    #[command(flatten)]
    pub(super) size: SizeOptions,
    #[command(flatten)]
    pub(super) machine: MachineOptions,
    #[command(flatten)]
    pub(super) network: NetworkOptions,
    /// Copy PATH into /workspace before the command runs, and run the command
    /// there. Of a directory, the contents are copied; a .tar, .tar.gz, .tgz or
    /// .tar.zst is unpacked.
    #[arg(long, value_name = "PATH")]
    pub(super) push: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) services: ServiceFlags,
    #[command(flatten)]
    pub(super) start: StartOptions,
    /// End the command after this many seconds. Default: no limit.
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub(super) timeout_seconds: Option<Duration>,
    /// Print the result as JSON. The output of the command goes to standard
    /// error then.
    #[arg(long)]
    pub(super) json: bool,
    /// Command that prepares the VM, and its arguments, run without a shell. It
    /// must exit with 0.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct SaveArguments {
    /// Name of the template, which no other one has. It contains everything that
    /// is in the memory of the VM, also secrets.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// ID of the VM, as listed by `vmcell ps`, or the name of a workspace.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) options: SaveOptions,
    /// Print the template as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print the list as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InspectArguments {
    /// Name of the template, as listed by `vmcell template ls`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print the template as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RemoveArguments {
    /// Names of templates, as listed by `vmcell template ls`.
    #[arg(value_name = "NAME", required = true)]
    pub(super) names: Vec<String>,
    /// Print what was removed as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PruneArguments {
    /// Remove what was not used for this many days.
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(super) unused_days: u32,
    /// Print what was removed as JSON.
    #[arg(long)]
    pub(super) json: bool,
}
