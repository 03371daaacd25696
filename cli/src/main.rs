//! `vmcell`: run commands in microVMs.

mod arguments;
mod command;
mod demo;
mod doctor;
mod env_file;
mod environment;
mod exec;
mod exit_code;
mod failure;
mod files;
mod foreground;
mod input;
mod kill;
mod limits;
mod logs;
mod machine_options;
mod new_vm;
mod output;
mod port;
mod process_name;
mod ps;
mod result;
mod root;
mod run;
mod runtime;
mod screen;
mod service;
mod shell;
mod signal_name;
mod start_options;
mod stop;
mod stream;
mod surroundings;
mod tail;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};
use vmcell_cli::{options::manual, show::guest_colours};

use arguments::{Arguments, Task};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_env("VMCELL_LOG"))
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr)
        .init();
    let json = arguments.task.json();
    let runs_a_command = matches!(
        arguments.task,
        Task::Run(_) | Task::Exec(_) | Task::Shell(_)
    );
    let outcome = match arguments.task {
        Task::Run(arguments) => run::run(arguments),
        Task::Exec(arguments) => exec::exec(arguments),
        Task::Shell(arguments) => shell::shell(arguments),
        Task::Screen(arguments) => screen::screen(arguments),
        Task::Ps(arguments) => ps::ps(&arguments),
        Task::Logs(arguments) => logs::logs(arguments),
        Task::Stop(arguments) => stop::stop(arguments),
        Task::Kill(arguments) => kill::kill(arguments),
        Task::Service(arguments) => service::service(arguments),
        Task::Publish(arguments) => port::publish(arguments),
        Task::Cp(arguments) => files::cp(arguments),
        Task::Ls(arguments) => files::ls(arguments),
        Task::Cat(arguments) => files::cat(arguments),
        Task::Stat(arguments) => files::stat(arguments),
        Task::Patch(arguments) => files::patch(arguments),
        Task::Diff(arguments) => files::diff(arguments),
        Task::Completions(arguments) => manual::completions(Arguments::command(), &arguments),
        Task::Man(arguments) => manual::man(Arguments::command(), &arguments),
        Task::Demo(arguments) => demo::demo(&arguments),
        Task::Doctor(arguments) => return doctor::doctor(&arguments),
    };
    let code = outcome.unwrap_or_else(|error| {
        failure::report(&error, json);
        match error.downcast_ref() {
            Some(error) if runs_a_command => exit_code::of_error(error),
            _ => exit_code::OUR_OWN,
        }
    });
    guest_colours::end_at_exit();
    code.into()
}
