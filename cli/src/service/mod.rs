//! Services of a VM: `vmcell service`, and the services of `vmcell run`.
//!
//! The options of `run` for several services may come in any order. [`flags`]
//! parses them, [`plan`] assigns them to their services.

mod arguments;
mod control;
mod flags;
mod for_service;
mod list;
mod logs;
mod plan;
mod settings;
mod start;
mod status;

pub(crate) use arguments::ServiceArguments;
pub(crate) use flags::{HELP_HEADING, ServiceFlags};
pub(crate) use plan::PlannedService;
pub(crate) use status::warning;

use arguments::ServiceCommand;
use control::Action;

use crate::runtime::block_on;

pub(crate) fn service(arguments: ServiceArguments) -> anyhow::Result<u8> {
    block_on(async move {
        match arguments.command {
            ServiceCommand::Start(arguments) => start::start(*arguments).await,
            ServiceCommand::Ls(arguments) => list::list(&arguments).await,
            ServiceCommand::Logs(arguments) => logs::logs(&arguments).await,
            ServiceCommand::Status(arguments) => control::status(&arguments).await,
            ServiceCommand::Stop(arguments) => control::apply(&arguments, Action::Stop).await,
            ServiceCommand::Restart(arguments) => control::apply(&arguments, Action::Restart).await,
            ServiceCommand::Rm(arguments) => control::remove(&arguments).await,
        }
    })
}
