use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use vmcell::{Command, workspace::Workspace};

use crate::failure::Failure;

/// What is run in a guest.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum CommandLine {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

impl CommandLine {
    pub(crate) fn into_command(self) -> Result<Command, Failure> {
        match self {
            Self::Shell(line) if line.trim().is_empty() => Err(Failure::invalid(
                "command: an empty line runs nothing: say what to run",
            )),
            Self::Shell(line) => Ok(Command::shell(line)),
            Self::Argv(argv) if argv.is_empty() => Err(Failure::invalid(
                "command: an empty list runs nothing: the program comes first",
            )),
            Self::Argv(argv) => Ok(Command::from_argv(argv)),
        }
    }
}

/// Names of secrets of the workspace, and the environment variables that they become.
pub(crate) type SecretEnv = BTreeMap<String, String>;

/// Grants secrets of a workspace to a command.
pub(crate) async fn grant(
    workspace: &Workspace,
    mut command: Command,
    secrets: &SecretEnv,
) -> Result<Command, Failure> {
    for (name, variable) in secrets {
        let secret = workspace.secret(name).await?;
        command = command.secret_env(variable, &secret);
    }
    Ok(command)
}
