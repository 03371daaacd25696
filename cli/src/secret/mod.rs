//! `vmcell secret`: the secrets that a workspace keeps.

mod grants;
mod new_secret;

pub(crate) use grants::{SecretOptions, SecretVariables};
pub(crate) use new_secret::NewSecretOptions;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use anyhow::ensure;
use clap::{Args, Subcommand};
use serde_json::json;
use vmcell::{
    secret::{Secret, SecretInfo},
    workspace::{Workspace, Workspaces},
};
use vmcell_cli::show::Table;

use crate::{failure::print_json, runtime::block_on};

const EXAMPLES: &str = "\
Examples:
  vmcell secret set build api-token --file token.txt
  pass show api-token | vmcell secret set build api-token
  vmcell workspace exec build --secret-env api-token=API_TOKEN -- ./deploy";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SecretArguments {
    #[command(subcommand)]
    command: SecretCommand,
    /// Print the result as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum SecretCommand {
    /// Keep a secret in a workspace, for `--secret-env`. Its value is read from
    /// standard input, without the line end at its end.
    Set(SetArguments),
    /// List the secrets that a workspace keeps: names and sources, never values.
    List(WorkspaceId),
    /// Forget a secret. Programs that have it keep it.
    Rm(NamedSecret),
}

#[derive(Debug, Args)]
struct SetArguments {
    #[command(flatten)]
    secret: NamedSecret,
    /// Read the value from a file instead.
    #[arg(long, value_name = "PATH", conflicts_with = "from_env")]
    file: Option<PathBuf>,
    /// Read the value from a variable of your environment instead.
    #[arg(long, value_name = "VAR")]
    from_env: Option<String>,
}

#[derive(Debug, Args)]
struct WorkspaceId {
    /// ID or name of the workspace.
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Debug, Args)]
struct NamedSecret {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// Name of the secret: letters, digits, `-`, `_` and `.`.
    #[arg(value_name = "NAME")]
    name: String,
}

pub(crate) fn secret(arguments: SecretArguments) -> anyhow::Result<u8> {
    let json = arguments.json;
    match arguments.command {
        SecretCommand::Set(arguments) => {
            let secret = arguments.read()?;
            block_on(async move {
                let workspace = find(&arguments.secret.workspace).await?;
                workspace.keep_secret(&secret).await?;
                print(&workspace, vec![secret.info()], json)
            })
        }
        SecretCommand::List(id) => block_on(async move {
            let workspace = find(&id).await?;
            let list = workspace.secrets().await?;
            print(&workspace, list, json)
        }),
        SecretCommand::Rm(secret) => block_on(async move {
            let workspace = find(&secret.workspace).await?;
            workspace.forget_secret(&secret.name).await?;
            if json {
                print_json(&json!({ "workspace_id": workspace.id(), "removed": secret.name }));
            }
            Ok(0)
        }),
    }
}

async fn find(workspace: &WorkspaceId) -> Result<Workspace, vmcell::Error> {
    Workspaces::open()?.get(&workspace.id).await
}

fn print(workspace: &Workspace, secrets: Vec<SecretInfo>, json: bool) -> anyhow::Result<u8> {
    if json {
        print_json(&json!({ "workspace_id": workspace.id(), "secrets": secrets }));
        return Ok(0);
    }
    let mut table = Table::new(["NAME", "SOURCE"]);
    for SecretInfo { name, source, .. } in secrets {
        table.add([name, source.to_string()]);
    }
    table.print_to_stdout()?;
    Ok(0)
}

impl SetArguments {
    /// Reads the value from where the user has put it.
    fn read(&self) -> anyhow::Result<Secret> {
        let name = &self.secret.name;
        Ok(match (&self.file, &self.from_env) {
            (Some(path), _) => Secret::from_file(name, path)?,
            (None, Some(variable)) => Secret::from_env(name, variable)?,
            (None, None) => {
                ensure!(
                    !io::stdin().is_terminal(),
                    "the value is read from standard input, which is a terminal and would show \
                     it: use a pipe, --file or --from-env"
                );
                Secret::from_file(name, "/dev/stdin")?
            }
        })
    }
}
