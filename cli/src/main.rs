//! `vmcell`: run commands in microVMs.

mod arguments;
mod background;
mod boot_disk;
mod command;
mod demo;
mod digest;
mod doctor;
mod env;
mod env_file;
mod environment;
mod exec;
mod exit_code;
mod expired;
mod failure;
mod files;
mod foreground;
mod input;
mod kept_vm;
mod kept_vm_options;
mod kill;
mod limits;
mod logs;
mod machine_options;
mod mcp;
mod metrics;
mod network;
mod network_options;
mod new_vm;
mod output;
mod pause;
mod port;
mod process_selector;
mod ps;
mod quota_options;
mod receipt;
mod restore;
mod result;
mod run;
mod run_services;
mod runtime;
mod screen;
mod secret;
mod service;
mod shell;
mod size_options;
mod snapshot;
mod start_options;
mod stop;
mod stream;
mod tail;
mod target;
mod template;
mod terminate;
mod tool;
mod top;
mod vm;
mod vm_source;
mod workspace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};
use vmcell::secret::disable_core_dumps;
use vmcell_cli::{options::manual, show::guest_colours};

use arguments::{Arguments, CliCommand};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_env("VMCELL_LOG"))
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr)
        .init();
    let json = arguments.command.json();
    let runs_a_command = arguments.command.runs_a_command();
    if let Err(error) = disable_core_dumps() {
        tracing::warn!(%error, "a crash may leave a core dump with secrets");
    }
    let boots = arguments.command.boots_a_vm();
    let reaping = boots.then(expired::reap_in_background).flatten();
    let outcome = match arguments.command {
        CliCommand::Run(arguments) => run::run(arguments),
        CliCommand::Exec(arguments) => exec::exec(arguments),
        CliCommand::Shell(arguments) => shell::shell(arguments),
        CliCommand::Screen(arguments) => screen::screen(arguments),
        CliCommand::Ps(arguments) => ps::ps(&arguments),
        CliCommand::Logs(arguments) => logs::logs(arguments),
        CliCommand::Stop(arguments) => stop::stop(arguments),
        CliCommand::Kill(arguments) => kill::kill(arguments),
        CliCommand::Pause(arguments) => pause::pause(arguments),
        CliCommand::Resume(arguments) => pause::resume(arguments),
        CliCommand::Snapshot(arguments) => snapshot::snapshot(arguments),
        CliCommand::Restore(arguments) => restore::restore(arguments),
        CliCommand::Template(arguments) => template::template(arguments),
        CliCommand::Workspace(arguments) => workspace::workspace(arguments),
        CliCommand::Vm(arguments) => vm::vm(arguments),
        CliCommand::Secret(arguments) => secret::secret(arguments),
        CliCommand::Terminate(arguments) => terminate::terminate(&arguments),
        CliCommand::KeepWorkspace => workspace::keep(),
        CliCommand::Service(arguments) => service::service(arguments),
        CliCommand::Publish(arguments) => port::publish(arguments),
        CliCommand::Network(arguments) => network::network(arguments),
        CliCommand::Metrics(arguments) => metrics::metrics(arguments),
        CliCommand::Top(arguments) => top::top(&arguments),
        CliCommand::Cp(arguments) => files::cp(arguments),
        CliCommand::Ls(arguments) => files::ls(arguments),
        CliCommand::Cat(arguments) => files::cat(arguments),
        CliCommand::Stat(arguments) => files::stat(arguments),
        CliCommand::Patch(arguments) => files::patch(arguments),
        CliCommand::Diff(arguments) => files::diff(arguments),
        CliCommand::Tool(arguments) => tool::tool(arguments),
        CliCommand::Mcp(arguments) => mcp::mcp(arguments),
        CliCommand::Receipt(arguments) => receipt::receipt(&arguments),
        CliCommand::Completions(arguments) => manual::completions(Arguments::command(), &arguments),
        CliCommand::Man(arguments) => manual::man(Arguments::command(), &arguments),
        CliCommand::Env(arguments) => env::env(arguments),
        CliCommand::Version => version(),
        CliCommand::Demo(arguments) => demo::demo(&arguments),
        CliCommand::Doctor(arguments) => return doctor::doctor(&arguments),
    };
    let code = outcome.unwrap_or_else(|error| {
        if let Some(usage) = error.downcast_ref::<clap::Error>() {
            return failure::report_usage(usage);
        }
        failure::report_error(&error, json);
        match error.downcast_ref() {
            Some(error) if runs_a_command => exit_code::of_error(error),
            _ => exit_code::TOOL_FAILED,
        }
    });
    if let Some(reaping) = reaping {
        // It fails only if it panicked, and has said so.
        let _ = reaping.join();
    }
    guest_colours::reset_at_exit();
    code.into()
}

/// Prints what `--version` prints.
fn version() -> anyhow::Result<u8> {
    print!("{}", Arguments::command().render_version());
    Ok(0)
}
