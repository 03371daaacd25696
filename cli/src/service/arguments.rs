use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::settings::Settings;
use crate::{limits::LimitOptions, start_options::StartOptions};

#[derive(Debug, Args)]
pub(crate) struct ServiceArguments {
    #[command(subcommand)]
    pub(super) task: ServiceTask,
}

#[derive(Debug, Subcommand)]
pub(super) enum ServiceTask {
    /// Start a service, and wait until it is ready.
    Start(Box<StartArguments>),
    /// List the services of a VM.
    Ls(ListArguments),
    /// Tell how a service is.
    Status(OneArguments),
    /// Print what a service has printed.
    Logs(LogArguments),
    /// End a service in order: it is asked to, and after a while made to.
    Stop(OneArguments),
    /// End a service if need be, start it again, and wait until it is ready.
    Restart(OneArguments),
    /// Forget a service that has ended, and its log.
    Rm(OneArguments),
}

impl ServiceArguments {
    /// Whether failures are told as JSON.
    pub(crate) fn json(&self) -> bool {
        match &self.task {
            ServiceTask::Start(arguments) => arguments.json,
            ServiceTask::Ls(arguments) => arguments.json,
            ServiceTask::Logs(arguments) => arguments.json,
            ServiceTask::Status(arguments)
            | ServiceTask::Stop(arguments)
            | ServiceTask::Restart(arguments)
            | ServiceTask::Rm(arguments) => arguments.json,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct StartArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// What the service is called: letters, digits, `-`, `_` and `.`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) settings: Settings,
    #[command(flatten)]
    pub(super) start: StartOptions,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    /// It is fine if the very same service runs already.
    #[arg(long)]
    pub(super) if_same: bool,
    /// Do not wait until it is ready.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Print how it is as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// The program of the service, executed as it is, without a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print the list as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct OneArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The service, as `vmcell service ls` lists it.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print how it is as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct LogArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The service, as `vmcell service ls` lists it.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Only the last N lines.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        allow_negative_numbers = true
    )]
    pub(super) tail: u32,
    /// Everything that is kept.
    #[arg(long, conflicts_with = "tail")]
    pub(super) all: bool,
    /// Go on until the service has ended for good.
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Print what there is as one JSON object, at the end.
    #[arg(long)]
    pub(super) json: bool,
}
