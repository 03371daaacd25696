use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::settings::ServiceSettings;
use crate::{limits::LimitOptions, start_options::StartOptions};

#[derive(Debug, Args)]
pub(crate) struct ServiceArguments {
    #[command(subcommand)]
    pub(super) command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ServiceCommand {
    /// Start a service and wait until it is ready.
    Start(Box<StartArguments>),
    /// List the services of a VM.
    Ls(ListArguments),
    /// Show the status of a service.
    Status(NamedServiceArguments),
    /// Print the log of a service.
    Logs(LogArguments),
    /// Stop a service: ask it to end, and kill it if it does not end in time.
    Stop(NamedServiceArguments),
    /// Restart a service and wait until it is ready.
    Restart(NamedServiceArguments),
    /// Remove a service that has ended, and its log.
    Rm(NamedServiceArguments),
}

impl ServiceArguments {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            ServiceCommand::Start(arguments) => arguments.json,
            ServiceCommand::Ls(arguments) => arguments.json,
            ServiceCommand::Logs(arguments) => arguments.json,
            ServiceCommand::Status(arguments)
            | ServiceCommand::Stop(arguments)
            | ServiceCommand::Restart(arguments)
            | ServiceCommand::Rm(arguments) => arguments.json,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct StartArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Name of the service: letters, digits, `-`, `_` and `.`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) settings: ServiceSettings,
    #[command(flatten)]
    pub(super) start: StartOptions,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    /// Succeed if the same service with the same settings is already running.
    #[arg(long)]
    pub(super) if_same: bool,
    /// Do not wait until the service is ready.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Print the status as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Program of the service and its arguments, run without a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print the list as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct NamedServiceArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Name of the service, as listed by `vmcell service ls`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print the status as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Name of the service, as listed by `vmcell service ls`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print only the last N lines.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        allow_negative_numbers = true
    )]
    pub(super) tail: u32,
    /// Print everything that is kept.
    #[arg(long, conflicts_with = "tail")]
    pub(super) all: bool,
    /// Keep printing until the service has ended and will not be restarted.
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Print the log as one JSON object at the end.
    #[arg(long)]
    pub(super) json: bool,
}
