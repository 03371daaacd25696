use std::ffi::OsString;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct EnvArguments {
    #[command(subcommand)]
    pub(super) command: EnvCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum EnvCommand {
    /// List the environments.
    #[command(visible_alias = "ls")]
    List(ListArguments),
    /// Show one environment.
    Inspect(InspectArguments),
    /// Make an environment from the image of a container.
    Import(ImportArguments),
    /// Remove environments that were imported. Workspaces and templates that were made from
    /// them go on.
    #[command(visible_alias = "rm")]
    Remove(RemoveArguments),
    /// Remove disk images that nothing needs.
    Prune(PruneArguments),
}

impl EnvArguments {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            EnvCommand::List(arguments) => arguments.json,
            EnvCommand::Inspect(arguments) => arguments.json,
            EnvCommand::Import(arguments) => arguments.json,
            EnvCommand::Remove(arguments) => arguments.json,
            EnvCommand::Prune(arguments) => arguments.json,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InspectArguments {
    /// Name of the environment.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  skopeo copy docker://alpine oci-archive:alpine.tar
  vmcell env import oci-archive:alpine.tar alpine
  vmcell run alpine";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(super) struct ImportArguments {
    /// Where the image is: `oci:DIR[:TAG]`, `oci-archive:FILE[:TAG]` or
    /// `docker-archive:FILE[:NAME:TAG]`.
    #[arg(value_name = "SOURCE")]
    pub(super) source: OsString,
    /// Name of the environment: lower-case letters, digits, `.`, `_` and `-`. One that has this
    /// name already loses it.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RemoveArguments {
    /// Names of the environments.
    #[arg(value_name = "NAME", required = true)]
    pub(super) names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PruneArguments {
    /// Also remove those of `base` and `debian`, which are built again when they are wanted.
    #[arg(long)]
    pub(super) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}
