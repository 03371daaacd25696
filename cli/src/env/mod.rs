//! `vmcell env`: the environments that VMs boot.

mod arguments;
mod build;
mod import;
mod info;
mod inspect;
mod list;
mod prune;
mod pull;
mod remove;
mod users;

pub(crate) use arguments::EnvArguments;

use arguments::EnvCommand;

use crate::runtime::block_on;

pub(crate) fn env(arguments: EnvArguments) -> anyhow::Result<u8> {
    block_on(async move {
        match arguments.command {
            EnvCommand::List(arguments) => list::list(&arguments).await,
            EnvCommand::Inspect(arguments) => inspect::inspect(&arguments).await,
            EnvCommand::Import(arguments) => import::import(arguments).await,
            EnvCommand::Build(arguments) => build::build(arguments).await,
            EnvCommand::Pull(arguments) => pull::pull(arguments).await,
            EnvCommand::Remove(arguments) => remove::remove(arguments).await,
            EnvCommand::Prune(arguments) => prune::prune(&arguments).await,
        }
    })
}
