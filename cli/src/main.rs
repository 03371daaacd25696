//! `vmcell`: run commands in microVMs.

mod arguments;
mod doctor;
mod environment;
mod exit_code;
mod input;
mod output;
mod run;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use arguments::{Arguments, Task};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_env("VMCELL_LOG"))
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr)
        .init();
    match arguments.task {
        Task::Run(arguments) => run::run(arguments),
        Task::Doctor(arguments) => doctor::doctor(&arguments),
    }
}
