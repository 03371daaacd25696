use std::ffi::OsString;

use clap::{Args, Subcommand};
use vmcell::port::PortMapping;

use super::settings::ServiceSettings;
use crate::{limits::LimitOptions, secret::SecretOptions, start_options::StartOptions};

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

/// The VM that a command is about.
#[derive(Debug, Args)]
pub(super) struct VmId {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Debug, Args)]
pub(super) struct StartArguments {
    #[command(flatten)]
    pub(super) vm: VmId,
    #[command(flatten)]
    pub(super) service: NewService,
    /// Print the status as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// A service to start.
#[derive(Debug, Args)]
pub(crate) struct NewService {
    /// Name of the service: letters, digits, `-`, `_` and `.`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) settings: ServiceSettings,
    #[command(flatten)]
    pub(super) start: StartOptions,
    #[command(flatten)]
    pub(super) secrets: SecretOptions,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    /// Forward port HOST of 127.0.0.1 to port GUEST of the VM's loopback
    /// interface until the service ends. Without HOST, a free port is chosen
    /// and printed.
    #[arg(long, short, value_name = "[HOST:]GUEST")]
    pub(super) publish: Vec<PortMapping>,
    /// Succeed if the same service with the same settings is already running.
    #[arg(long)]
    pub(super) if_same: bool,
    /// Do not wait until the service is ready.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Program of the service and its arguments, run without a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    pub(super) vm: VmId,
    /// Print the list as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct NamedServiceArguments {
    #[command(flatten)]
    pub(super) vm: VmId,
    #[command(flatten)]
    pub(super) service: NamedService,
    /// Print the status as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// A service that exists.
#[derive(Debug, Args)]
pub(crate) struct NamedService {
    /// Name of the service, as the list of services has it.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
}

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    #[command(flatten)]
    pub(super) vm: VmId,
    #[command(flatten)]
    pub(super) log: LogOptions,
    /// Print the log as one JSON object at the end.
    #[arg(long)]
    pub(super) json: bool,
}

/// What is printed of a log.
#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    #[command(flatten)]
    pub(super) service: NamedService,
    /// Print only the last N lines.
    #[arg(
        long,
        visible_alias = "tail-lines",
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
}
