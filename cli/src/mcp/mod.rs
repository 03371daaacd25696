//! `vmcell mcp`: VMs and workspaces as tools for language models.

mod arguments;
mod serve;

pub(crate) use arguments::McpArguments;

use arguments::McpCommand;

pub(crate) fn mcp(arguments: McpArguments) -> anyhow::Result<u8> {
    match arguments.command {
        McpCommand::Serve(arguments) => serve::serve(&arguments),
    }
}
