//! `vmcell workspace shell`: shells on terminals, which go on between commands.

use std::{ffi::OsString, io, io::Write as _, time::Duration};

use clap::{Args, Subcommand, value_parser};
use serde_json::{Value, json};
use vmcell::{
    ProcessSelector, Signal,
    terminal::{Reply, Terminal, TerminalOptions, TerminalSize},
};
use vmcell_cli::show::{SafeStdout, name};

use super::{arguments::WorkspaceId, attach};
use crate::{
    failure::{print_json, report},
    screen::find,
    secret::SecretOptions,
    target::Target,
};

/// How long a terminal prints nothing until input counts as typed.
const INPUT_QUIET: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(super) struct ShellArguments {
    #[command(subcommand)]
    command: ShellCommand,
}

#[derive(Debug, Subcommand)]
enum ShellCommand {
    /// Open a shell, and print its ID.
    Open(OpenArguments),
    /// Print what a shell has printed.
    Read(ReadArguments),
    /// Type into a shell.
    Write(WriteArguments),
    /// Send a signal to what runs in the foreground of a shell.
    Signal(SignalArguments),
    /// End a shell, and all that runs in it.
    Close(ShellId),
}

#[derive(Debug, Args)]
struct OpenArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// Working directory. Default: /workspace.
    #[arg(long, value_name = "DIR")]
    cwd: Option<OsString>,
    #[command(flatten)]
    secrets: SecretOptions,
    /// Columns of the terminal.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = value_parser!(u16).range(1..))]
    cols: u16,
    /// Rows of the terminal.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u16).range(1..))]
    rows: u16,
    /// Print only the ID of the shell.
    #[arg(long, conflicts_with = "json")]
    id_only: bool,
}

/// A shell of a workspace.
#[derive(Debug, Args)]
struct ShellId {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// ID of the shell, as printed by `vmcell workspace shell open`.
    #[arg(value_name = "SHELL")]
    shell: String,
}

#[derive(Debug, Args)]
struct ReadArguments {
    #[command(flatten)]
    shell: ShellId,
    /// Offset to start at: 0, or where the last read ended.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cursor: u64,
    /// Print at most this many bytes.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    max_chars: usize,
    /// Print text without escape sequences.
    #[arg(long)]
    plain: bool,
    /// Wait until the shell has printed nothing for this many milliseconds.
    #[arg(long, value_name = "N")]
    wait_for_idle_ms: Option<u64>,
}

#[derive(Debug, Args)]
struct WriteArguments {
    #[command(flatten)]
    shell: ShellId,
    /// Text to type.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    input: String,
    /// Do not type the Enter key after it.
    #[arg(long)]
    no_newline: bool,
}

#[derive(Debug, Args)]
struct SignalArguments {
    #[command(flatten)]
    shell: ShellId,
    /// Signal, by name or number.
    #[arg(long, value_name = "SIGNAL", default_value_t = Signal::INT)]
    signal: Signal,
}

pub(super) async fn shell(arguments: ShellArguments, json: bool) -> anyhow::Result<u8> {
    match arguments.command {
        ShellCommand::Open(arguments) => open(arguments, json).await,
        ShellCommand::Read(arguments) => read(&arguments, json).await,
        ShellCommand::Write(arguments) => write(&arguments, json).await,
        ShellCommand::Signal(arguments) => signal(&arguments, json).await,
        ShellCommand::Close(shell) => close(&shell, json).await,
    }
}

async fn open(arguments: OpenArguments, json: bool) -> anyhow::Result<u8> {
    let target = attach(&arguments.workspace.id).await?;
    let mut command = TerminalOptions::shell();
    if let Some(directory) = arguments.cwd {
        command = command.current_dir(directory);
    }
    let size = TerminalSize::new(arguments.cols, arguments.rows)?;
    let command = target.prepare(command).await?;
    let command = target.grant(command, &arguments.secrets).await?;
    let options = TerminalOptions::command(command).size(size);
    let terminal = target.vm.terminals().open(options).await?;
    let id = format!("shell-{}", terminal.id());
    terminal.set_tag(&id).await?;
    if json {
        let mut object = target.as_json();
        object["shell_id"] = id.into();
        object["cols"] = arguments.cols.into();
        object["rows"] = arguments.rows.into();
        print_json(&object);
    } else if arguments.id_only {
        writeln!(io::stdout(), "{id}")?;
    } else {
        writeln!(io::stdout(), "{} has the shell {id}", target.vm.id())?;
    }
    Ok(0)
}

async fn read(arguments: &ReadArguments, json: bool) -> anyhow::Result<u8> {
    let target = attach(&arguments.shell.workspace.id).await?;
    let view_only = TerminalOptions::new().view_only();
    let terminal = find(&target.vm, &arguments.shell.selector(), view_only).await?;
    terminal.catch_up().await?;
    let mut reading = terminal.read(arguments.cursor);
    if let Some(milliseconds) = arguments.wait_for_idle_ms {
        let silence = Duration::from_millis(milliseconds);
        reading = reading.quiet(silence).wait_for_idle();
    }
    let reply = reading.max_bytes(arguments.max_chars).await?;
    if json {
        print_json(&reply_as_json(&target, arguments, &terminal, &reply));
        return Ok(0);
    }
    let output = match arguments.plain {
        true => reply.text.as_bytes(),
        false => &reply.raw,
    };
    let mut out = SafeStdout::new();
    let written = out.file_bytes(output);
    let code = out.finish(written)?;
    report(&format!("read on with --cursor {}", reply.end));
    Ok(code)
}

fn reply_as_json(
    target: &Target,
    arguments: &ReadArguments,
    terminal: &Terminal,
    reply: &Reply,
) -> Value {
    let mut object = shell_as_json(target, &arguments.shell);
    object["cursor"] = reply.start.into();
    object["next_cursor"] = reply.end.into();
    object["dropped_bytes"] = reply.lost.into();
    object["truncated"] = reply.more.into();
    object["plain"] = arguments.plain.into();
    match arguments.plain {
        true => object["output"] = reply.text.as_str().into(),
        false => name::insert_bytes(&mut object, "output", &reply.raw),
    }
    let exit = terminal.exit();
    object["state"] = if exit.is_some() { "stopped" } else { "running" }.into();
    object
}

async fn write(arguments: &WriteArguments, json: bool) -> anyhow::Result<u8> {
    let (target, terminal) = attach_to(&arguments.shell).await?;
    let enter = if arguments.no_newline { "" } else { "\r" };
    let input = format!("{}{enter}", arguments.input);
    // The wait ends when the guest has it.
    terminal.send_input(&input).quiet(INPUT_QUIET).await?;
    if json {
        let mut object = shell_as_json(&target, &arguments.shell);
        object["input_length"] = arguments.input.len().into();
        object["append_newline"] = (!arguments.no_newline).into();
        print_json(&object);
    }
    Ok(0)
}

async fn signal(arguments: &SignalArguments, json: bool) -> anyhow::Result<u8> {
    let (target, terminal) = attach_to(&arguments.shell).await?;
    let sending = terminal.send_signal(arguments.signal);
    sending.quiet(INPUT_QUIET).await?;
    if json {
        let mut object = shell_as_json(&target, &arguments.shell);
        object["signal"] = json!(arguments.signal);
        print_json(&object);
    }
    Ok(0)
}

async fn close(shell: &ShellId, json: bool) -> anyhow::Result<u8> {
    let (target, terminal) = attach_to(shell).await?;
    terminal.terminate().await?;
    terminal.forget().await?;
    if json {
        let mut object = shell_as_json(&target, shell);
        object["closed"] = true.into();
        print_json(&object);
    }
    Ok(0)
}

impl ShellId {
    fn selector(&self) -> ProcessSelector {
        ProcessSelector::Tag(self.shell.clone())
    }
}

async fn attach_to(shell: &ShellId) -> anyhow::Result<(Target, Terminal)> {
    let target = attach(&shell.workspace.id).await?;
    let terminal = find(&target.vm, &shell.selector(), TerminalOptions::new()).await?;
    Ok((target, terminal))
}

fn shell_as_json(target: &Target, shell: &ShellId) -> Value {
    let mut object = target.as_json();
    object["shell_id"] = shell.shell.as_str().into();
    object
}
