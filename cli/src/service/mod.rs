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

pub(crate) use arguments::{LogOptions, NamedService, NewService, ServiceArguments};
pub(crate) use control::{Action, apply, status as print_status};
pub(crate) use flags::{HELP_HEADING, ServiceFlags};
pub(crate) use list::list;
pub(crate) use logs::logs;
pub(crate) use plan::PlannedService;
pub(crate) use start::start;
pub(crate) use status::warning;

use arguments::{NamedServiceArguments, ServiceCommand};

use crate::{runtime::block_on, target::Target};

pub(crate) fn service(arguments: ServiceArguments) -> anyhow::Result<u8> {
    block_on(async move {
        match arguments.command {
            ServiceCommand::Start(arguments) => {
                let target = Target::attach(&arguments.vm.id).await?;
                start(&target, arguments.service, arguments.json).await
            }
            ServiceCommand::Ls(arguments) => {
                list(&Target::attach(&arguments.vm.id).await?, arguments.json).await
            }
            ServiceCommand::Logs(arguments) => {
                let target = Target::attach(&arguments.vm.id).await?;
                logs(&target, &arguments.log, arguments.json).await
            }
            ServiceCommand::Status(arguments) => {
                let target = Target::attach(&arguments.vm.id).await?;
                control::status(&target, &arguments.service, arguments.json).await
            }
            ServiceCommand::Stop(arguments) => change(&arguments, Action::Stop).await,
            ServiceCommand::Restart(arguments) => change(&arguments, Action::Restart).await,
            ServiceCommand::Rm(arguments) => {
                let target = Target::attach(&arguments.vm.id).await?;
                control::remove(&target, &arguments.service, arguments.json).await
            }
        }
    })
}

async fn change(arguments: &NamedServiceArguments, action: Action) -> anyhow::Result<u8> {
    let target = Target::attach(&arguments.vm.id).await?;
    apply(&target, &arguments.service, action, arguments.json).await
}
