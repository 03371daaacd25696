//! Commands in a workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::Call,
    command_line::{self, CommandLine, SecretEnv},
    execution::{self, DEFAULT_MAX_OUTPUT, Execution, Limits},
    failure::Failure,
    hints::Hints,
    tool::Tool,
};

pub(super) struct WorkspaceExec;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    workspace_id: String,
    /// A line for `sh -c`, or a program and its arguments.
    command: CommandLine,
    /// After this time it is killed, with all that it has started.
    #[serde(default = "default_timeout")]
    timeout_seconds: f64,
    /// Secrets of the workspace that this command gets: name to environment variable.
    #[serde(default)]
    secret_env: SecretEnv,
    /// Working directory. Default: /workspace.
    cwd: Option<String>,
    /// How much of each output is returned; more is cut in the middle.
    #[serde(default = "default_max_output")]
    max_output_bytes: usize,
}

pub(super) fn default_timeout() -> f64 {
    30.0
}

pub(super) fn default_max_output() -> usize {
    DEFAULT_MAX_OUTPUT
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    workspace_id: String,
    #[serde(flatten)]
    execution: Execution,
}

impl Tool for WorkspaceExec {
    const NAME: &'static str = "workspace_exec";
    const TITLE: &'static str = "Run a command in a workspace";
    const DESCRIPTION: &'static str = "\
Run a command in a workspace, in /workspace, and return what it prints and how it ended. The \
workspace goes on. A command that ends with another code than 0 is no error of this tool. For \
programs that keep running use service_start, for interactive ones shell_open.";
    const HINTS: Hints = Hints::RUNS;
    type Input = Input;
    type Output = Output;

    async fn run(call: Call, input: Input) -> Result<Output, Failure> {
        let limits = Limits::new(input.timeout_seconds, input.max_output_bytes)?;
        let mut command = limits.apply_to(input.command.into_command()?);
        if let Some(directory) = input.cwd {
            command = command.current_dir(directory);
        }
        let workspace = call.workspace(&input.workspace_id).await?;
        let command = command_line::grant(&workspace, command, &input.secret_env).await?;
        let stream = workspace.exec_stream(command).await?;
        Ok(Output {
            workspace_id: workspace.id().to_owned(),
            execution: execution::wait(&call, stream, limits).await?,
        })
    }
}
