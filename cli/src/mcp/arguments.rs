use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};
use vmcell_mcp::Profile;

const EXAMPLES: &str = "\
Examples:
  vmcell mcp serve --profile workspace-core
  vmcell mcp serve --allow-path ~/projects";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArguments {
    #[command(subcommand)]
    pub(super) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Serve a client on standard input and output, until it closes them, or clients over
    /// HTTP.
    Serve(ServeArguments),
}

#[derive(Debug, Args)]
pub(super) struct ServeArguments {
    /// Which tools it has: vm-run, workspace-core or workspace-full. workspace-core is
    /// recommended for most chats: its tools are those that a model needs to work on a
    /// project, without network and secrets.
    #[arg(long, value_name = "PROFILE", default_value_t)]
    pub(super) profile: Profile,
    /// Serve clients on this address of this machine, over HTTP, in place of one on standard
    /// input and output. The URL is printed, and the token that they need; port 0 is a free
    /// one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<SocketAddr>,
    /// Let the model read and write this folder of your machine: as the source of seeds
    /// and pushes, and as the target of exports. Without it, none.
    #[arg(long = "allow-path", value_name = "DIR")]
    pub(super) allowed_paths: Vec<PathBuf>,
    /// Add the tool `tool_run`, within this policy: see docs/tool.md.
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
}
