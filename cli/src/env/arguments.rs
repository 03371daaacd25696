use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use vmcell_rootfs::registry::Reference;

use crate::{
    network_options::NetworkOptions,
    size_options::SizeOptions,
    start_options::{Variable, parse_variable},
};

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
    /// Make an environment from an image of a registry.
    Pull(PullArguments),
    /// Make an environment from a Dockerfile, whose commands run in VMs.
    Build(Box<BuildArguments>),
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
            EnvCommand::Build(arguments) => arguments.json,
            EnvCommand::Pull(arguments) => arguments.json,
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

const PULL_EXAMPLES: &str = "\
Examples:
  vmcell env pull alpine
  vmcell run alpine
  vmcell env pull ghcr.io/team/tool:1.2 tool";

#[derive(Debug, Args)]
#[command(after_help = PULL_EXAMPLES)]
pub(super) struct PullArguments {
    /// Image: `[REGISTRY/]REPOSITORY[:TAG][@sha256:DIGEST]`. Without a registry, that of Docker.
    #[arg(value_name = "IMAGE")]
    pub(super) image: Reference,
    /// Name of the environment. Default: the last part of the repository.
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Speak HTTP without encryption, which anybody on the way can read and change.
    #[arg(long)]
    pub(super) plain_http: bool,
    /// Ask this host in place of the registry.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(super) mirror: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  vmcell env build -f Dockerfile tool
  vmcell env build -f images/tool.dockerfile --context . --allow deb.debian.org:80 tool
  vmcell run tool";

#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub(super) struct BuildArguments {
    /// Name of the environment: lower-case letters, digits, `.`, `_` and `-`. One that has this
    /// name already loses it.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// The Dockerfile.
    #[arg(long, short, value_name = "FILE", default_value = "Dockerfile")]
    pub(super) file: PathBuf,
    /// Folder whose files it can copy. Default: that of the Dockerfile.
    #[arg(long, value_name = "DIR")]
    pub(super) context: Option<PathBuf>,
    /// Set the value of an ARG.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(super) build_arg: Vec<Variable>,
    /// Build this stage, by its name or number, in place of the last one.
    #[arg(long, value_name = "STAGE")]
    pub(super) target: Option<String>,
    /// Do all steps again, whether or not they were done before.
    #[arg(long)]
    pub(super) no_cache: bool,
    #[command(flatten)]
    pub(super) size: SizeOptions,
    #[command(flatten)]
    pub(super) network: NetworkOptions,
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
