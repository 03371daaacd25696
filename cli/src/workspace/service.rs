//! `vmcell workspace service`: services of a running workspace.

use clap::{Args, Subcommand};

use super::{arguments::WorkspaceId, attach};
use crate::service::{self, Action, LogOptions, NamedService, NewService};

#[derive(Debug, Args)]
pub(super) struct ServiceArguments {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Start a service and wait until it is ready.
    Start(Box<StartArguments>),
    /// List the services.
    List(WorkspaceId),
    /// Show the status of a service.
    Status(NamedServiceArguments),
    /// Print the log of a service.
    Logs(LogArguments),
    /// Stop a service: ask it to end, and kill it if it does not end in time.
    Stop(NamedServiceArguments),
}

#[derive(Debug, Args)]
struct StartArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    service: NewService,
}

#[derive(Debug, Args)]
struct NamedServiceArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    service: NamedService,
}

#[derive(Debug, Args)]
struct LogArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    log: LogOptions,
}

pub(super) async fn service(arguments: ServiceArguments, json: bool) -> anyhow::Result<u8> {
    match arguments.command {
        ServiceCommand::Start(arguments) => {
            let target = attach(&arguments.workspace.id).await?;
            service::start(&target, arguments.service, json).await
        }
        ServiceCommand::List(workspace) => {
            let target = attach(&workspace.id).await?;
            service::list(&target, json).await
        }
        ServiceCommand::Status(arguments) => {
            let target = attach(&arguments.workspace.id).await?;
            service::print_status(&target, &arguments.service, json).await
        }
        ServiceCommand::Logs(arguments) => {
            let target = attach(&arguments.workspace.id).await?;
            service::logs(&target, &arguments.log, json).await
        }
        ServiceCommand::Stop(arguments) => {
            let target = attach(&arguments.workspace.id).await?;
            service::apply(&target, &arguments.service, Action::Stop, json).await
        }
    }
}
