//! Services of a VM: `vmcell service`, and the services of `vmcell run`.
//!
//! The options of `run` for several services may come in any order. [`flags`]
//! parses them, [`plan`] assigns them to their services.

mod about;
mod arguments;
mod flags;
mod list;
mod logs;
mod one;
mod plan;
mod settings;
mod start;
mod status;

pub(crate) use arguments::ServiceArguments;
pub(crate) use flags::{HELP_HEADING, ServiceFlags};
pub(crate) use plan::Planned;
pub(crate) use status::{as_json, note};

use arguments::ServiceTask;
use one::Change;

use crate::runtime::block_on;

pub(crate) fn service(arguments: ServiceArguments) -> anyhow::Result<u8> {
    block_on(async move {
        match arguments.task {
            ServiceTask::Start(arguments) => start::start(*arguments).await,
            ServiceTask::Ls(arguments) => list::list(&arguments).await,
            ServiceTask::Logs(arguments) => logs::logs(&arguments).await,
            ServiceTask::Status(arguments) => one::status(&arguments).await,
            ServiceTask::Stop(arguments) => one::change(&arguments, Change::Stop).await,
            ServiceTask::Restart(arguments) => one::change(&arguments, Change::Restart).await,
            ServiceTask::Rm(arguments) => one::remove(&arguments).await,
        }
    })
}
