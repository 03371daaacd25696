//! `vmcell tool`: runs requests of language models under a policy.

mod arguments;
mod policy;
mod run;
mod schema;

pub(crate) use arguments::ToolArguments;

use arguments::ToolCommand;

pub(crate) fn tool(arguments: ToolArguments) -> anyhow::Result<u8> {
    match arguments.command {
        ToolCommand::Run(arguments) => run::run(&arguments),
        ToolCommand::Schema(arguments) => schema::schema(&arguments),
    }
}
