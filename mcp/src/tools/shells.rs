//! Shells on terminals, which go on between calls.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{
    Error, ExecFailureKind, ProcessSelector, Signal, Vm,
    terminal::{Terminal, TerminalOptions, TerminalSize},
};

use crate::{
    call::Call,
    command_line::{self, SecretEnv},
    failure::Failure,
    hints::Hints,
    tool::Tool,
};

/// How long a terminal prints nothing until input counts as typed.
const INPUT_QUIET: Duration = Duration::from_millis(50);

/// The shell that a call is about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellId {
    workspace_id: String,
    /// As shell_open has returned it.
    shell_id: String,
}

async fn find(vm: &Vm, shell: &str, options: TerminalOptions) -> Result<Terminal, Failure> {
    let selector = ProcessSelector::Tag(shell.to_owned());
    match vm.terminals().attach_with(selector, options).await {
        Err(Error::Exec(failure))
            if matches!(
                failure.kind,
                ExecFailureKind::NotFound | ExecFailureKind::Invalid
            ) =>
        {
            let message = format!("the workspace has no shell {shell:?}");
            Err(Failure::new("no-such-shell", message).with_remedy("shell_open opens one"))
        }
        found => Ok(found?),
    }
}

pub(super) struct ShellOpen;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenInput {
    workspace_id: String,
    /// Working directory. Default: /workspace.
    cwd: Option<String>,
    #[serde(default = "default_columns")]
    cols: u16,
    #[serde(default = "default_rows")]
    rows: u16,
    /// Secrets of the workspace that it gets: name to environment variable.
    #[serde(default)]
    secret_env: SecretEnv,
}

fn default_columns() -> u16 {
    120
}

fn default_rows() -> u16 {
    30
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Opened {
    workspace_id: String,
    shell_id: String,
    cols: u16,
    rows: u16,
}

impl Tool for ShellOpen {
    const NAME: &'static str = "shell_open";
    const TITLE: &'static str = "Open a shell in a workspace";
    const DESCRIPTION: &'static str = "\
Open a shell on a terminal of a workspace, which goes on between calls: for programs that ask, \
debuggers and REPLs. shell_write types, shell_read reads. For single commands use workspace_exec.";
    const HINTS: Hints = Hints::RUNS;
    type Input = OpenInput;
    type Output = Opened;

    async fn run(call: Call, input: OpenInput) -> Result<Opened, Failure> {
        let size = TerminalSize::new(input.cols, input.rows)?;
        let mut command = TerminalOptions::shell();
        if let Some(directory) = input.cwd {
            command = command.current_dir(directory);
        }
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let command = workspace.prepare(command).await?;
        let command = command_line::grant(&workspace, command, &input.secret_env).await?;
        let options = TerminalOptions::command(command).size(size);
        let terminal = vm.terminals().open(options).await?;
        let shell_id = format!("shell-{}", terminal.id());
        terminal.set_tag(&shell_id).await?;
        Ok(Opened {
            workspace_id: workspace.id().to_owned(),
            shell_id,
            cols: input.cols,
            rows: input.rows,
        })
    }
}

pub(super) struct ShellRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInput {
    workspace_id: String,
    shell_id: String,
    /// Where to begin: 0, or next_cursor of the last call.
    #[serde(default)]
    cursor: u64,
    #[serde(default = "default_max_chars")]
    max_chars: usize,
    /// Return text without escape sequences. Recommended.
    #[serde(default)]
    plain: bool,
    /// Wait until it has printed nothing for so long; 300 is a good value.
    wait_for_idle_ms: Option<u64>,
}

fn default_max_chars() -> usize {
    65_536
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Read {
    workspace_id: String,
    shell_id: String,
    output: String,
    cursor: u64,
    next_cursor: u64,
    /// Bytes that were dropped before, because nobody has read them.
    dropped_bytes: u64,
    /// Whether there is more to read now.
    truncated: bool,
    /// running or stopped.
    state: &'static str,
}

impl Tool for ShellRead {
    const NAME: &'static str = "shell_read";
    const TITLE: &'static str = "Read from a shell";
    const DESCRIPTION: &'static str = "\
Return what a shell has printed since a cursor. Use plain and wait_for_idle_ms 300, and next_cursor \
for the next call.";
    const HINTS: Hints = Hints::READS;
    type Input = ReadInput;
    type Output = Read;

    async fn run(call: Call, input: ReadInput) -> Result<Read, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let view_only = TerminalOptions::new().view_only();
        let terminal = find(&vm, &input.shell_id, view_only).await?;
        terminal.catch_up().await?;
        let mut reading = terminal.read(input.cursor);
        if let Some(milliseconds) = input.wait_for_idle_ms {
            let silence = Duration::from_millis(milliseconds);
            reading = reading.quiet(silence).wait_for_idle();
        }
        let reply = reading.max_bytes(input.max_chars).await?;
        Ok(Read {
            workspace_id: workspace.id().to_owned(),
            shell_id: input.shell_id,
            output: match input.plain {
                true => reply.text,
                false => String::from_utf8_lossy(&reply.raw).into_owned(),
            },
            cursor: reply.start,
            next_cursor: reply.end,
            dropped_bytes: reply.lost,
            truncated: reply.more,
            state: match terminal.exit() {
                Some(_) => "stopped",
                None => "running",
            },
        })
    }
}

pub(super) struct ShellWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    workspace_id: String,
    shell_id: String,
    /// Text to type.
    input: String,
    /// Type the Enter key after it.
    #[serde(default = "yes")]
    append_newline: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    workspace_id: String,
    shell_id: String,
    input_length: usize,
    append_newline: bool,
}

impl Tool for ShellWrite {
    const NAME: &'static str = "shell_write";
    const TITLE: &'static str = "Type into a shell";
    const DESCRIPTION: &'static str = "\
Type text into a shell, and Enter after it. shell_read returns what it prints then.";
    const HINTS: Hints = Hints::RUNS;
    type Input = WriteInput;
    type Output = Written;

    async fn run(call: Call, input: WriteInput) -> Result<Written, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let terminal = find(&vm, &input.shell_id, TerminalOptions::new()).await?;
        let enter = if input.append_newline { "\r" } else { "" };
        let typed = format!("{}{enter}", input.input);
        // The wait ends when the guest has it.
        terminal.send_input(&typed).quiet(INPUT_QUIET).await?;
        Ok(Written {
            workspace_id: workspace.id().to_owned(),
            shell_id: input.shell_id,
            input_length: input.input.len(),
            append_newline: input.append_newline,
        })
    }
}

pub(super) struct ShellSignal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalInput {
    workspace_id: String,
    shell_id: String,
    /// Such as INT, TERM or KILL.
    #[serde(default = "interrupt")]
    signal_name: String,
}

fn interrupt() -> String {
    "INT".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Signalled {
    workspace_id: String,
    shell_id: String,
    signal_name: String,
}

impl Tool for ShellSignal {
    const NAME: &'static str = "shell_signal";
    const TITLE: &'static str = "Send a signal to a shell";
    const DESCRIPTION: &'static str = "\
Send a signal to what runs in the foreground of a shell. INT is what Ctrl+C sends.";
    const HINTS: Hints = Hints::RUNS;
    type Input = SignalInput;
    type Output = Signalled;

    async fn run(call: Call, input: SignalInput) -> Result<Signalled, Failure> {
        let signal: Signal = input.signal_name.parse().map_err(|_| {
            let message = format!("signal_name: there is no signal {:?}", input.signal_name);
            Failure::invalid(message)
        })?;
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let terminal = find(&vm, &input.shell_id, TerminalOptions::new()).await?;
        terminal.send_signal(signal).quiet(INPUT_QUIET).await?;
        Ok(Signalled {
            workspace_id: workspace.id().to_owned(),
            shell_id: input.shell_id,
            signal_name: input.signal_name,
        })
    }
}

pub(super) struct ShellClose;

#[derive(Serialize, JsonSchema)]
pub(super) struct Closed {
    workspace_id: String,
    shell_id: String,
    closed: bool,
}

impl Tool for ShellClose {
    const NAME: &'static str = "shell_close";
    const TITLE: &'static str = "Close a shell";
    const DESCRIPTION: &'static str = "End a shell, and all that runs in it.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = ShellId;
    type Output = Closed;

    async fn run(call: Call, input: ShellId) -> Result<Closed, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let terminal = find(&vm, &input.shell_id, TerminalOptions::new()).await?;
        terminal.terminate().await?;
        terminal.forget().await?;
        Ok(Closed {
            workspace_id: workspace.id().to_owned(),
            shell_id: input.shell_id,
            closed: true,
        })
    }
}
