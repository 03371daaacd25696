use std::path::PathBuf;

use clap::{Args, Subcommand};
use vmcell::tool::DEFAULT_CALLER;

#[derive(Debug, Args)]
pub(crate) struct ToolArguments {
    #[command(subcommand)]
    pub(super) command: ToolCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolCommand {
    /// Run a request, a JSON object, and print its result as one.
    Run(RunArguments),
    /// Print the JSON schema of requests.
    Schema(SchemaArguments),
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// File with the request. By default it is read from standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) policy: PolicyOptions,
    /// Who asks: one of the callers of the policy.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CALLER)]
    pub(super) caller: String,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    #[command(flatten)]
    pub(super) policy: PolicyOptions,
}

#[derive(Debug, Args)]
pub(super) struct PolicyOptions {
    /// File with the policy, in TOML. By default it is `vmcell/tool.toml` in
    /// your configuration folder; if there is none, a policy with the
    /// environments, without a network and without secrets.
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
}
