//! What was run in a workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::workspace::{CommandRecord, CommandState, RecordedOutput};

use super::workspaces::date;
use crate::{call::Call, failure::Failure, hints::Hints, tool::Tool};

pub(super) struct WorkspaceLogs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    workspace_id: String,
    /// How many commands are returned, the last ones.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    workspace_id: String,
    /// How many there are.
    command_count: usize,
    commands: Vec<Recorded>,
}

/// A command that was run.
#[derive(Serialize, JsonSchema)]
struct Recorded {
    number: u64,
    command: Vec<String>,
    cwd: String,
    started_at: String,
    ended_at: Option<String>,
    /// running, ended, failed or interrupted.
    state: &'static str,
    cause: Option<String>,
    exit_code: Option<u8>,
    error: Option<String>,
    stdout: Printed,
    stderr: Printed,
}

/// The end of an output.
#[derive(Serialize, JsonSchema)]
struct Printed {
    text: String,
    bytes: u64,
    truncated: bool,
}

impl Tool for WorkspaceLogs {
    const NAME: &'static str = "workspace_logs";
    const TITLE: &'static str = "Show what was run in a workspace";
    const DESCRIPTION: &'static str = "\
Return the commands that were run in a workspace with workspace_exec, and the end of what each \
has printed, until it was reset.";
    const HINTS: Hints = Hints::READS;
    type Input = Input;
    type Output = Output;

    async fn run(call: Call, input: Input) -> Result<Output, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        let history = workspace.history().await?;
        let skipped = history.len().saturating_sub(input.limit);
        Ok(Output {
            workspace_id: workspace.id().to_owned(),
            command_count: history.len(),
            commands: history.into_iter().skip(skipped).map(recorded).collect(),
        })
    }
}

fn recorded(command: CommandRecord) -> Recorded {
    let (state, cause, exit_code, error) = match command.state {
        CommandState::Running => ("running", None, None, None),
        CommandState::Ended { cause, code } => ("ended", Some(cause), code, None),
        CommandState::Failed(reason) => ("failed", None, None, Some(reason)),
        _ => ("interrupted", None, None, None),
    };
    Recorded {
        number: command.number,
        command: command.argv,
        cwd: command.cwd,
        started_at: date(command.began),
        ended_at: command.ended.map(date),
        state,
        cause,
        exit_code,
        error,
        stdout: printed(command.stdout),
        stderr: printed(command.stderr),
    }
}

fn printed(output: RecordedOutput) -> Printed {
    Printed {
        truncated: output.is_cut(),
        text: output.text,
        bytes: output.bytes,
    }
}
