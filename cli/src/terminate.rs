//! `vmcell terminate`: deletes all workspaces, and all VMs of `vmcell vm`.

use std::io::{self, IsTerminal, Write};

use anyhow::ensure;
use clap::Args;
use serde_json::{Value, json};
use vmcell::workspace::{DeletedWorkspaces, FailedDeletion, WorkspaceInfo};

use crate::{
    exit_code::INCOMPLETE,
    failure::{describe_any, error_as_json, print_json, report},
    runtime::block_on,
    vm, workspace,
};

#[derive(Debug, Args)]
pub(crate) struct TerminateArguments {
    /// Do not ask first. Only a person at a terminal is asked.
    #[arg(long, short)]
    yes: bool,
    /// Print what was deleted as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn terminate(arguments: &TerminateArguments) -> anyhow::Result<u8> {
    let (workspaces, vms) = (workspace::open()?, vm::open()?);
    if !arguments.yes && io::stdin().is_terminal() && io::stderr().is_terminal() {
        let doomed = block_on(async {
            let workspaces = workspaces.list().await?.into_iter();
            Ok(workspaces.chain(vms.list().await?).collect::<Vec<_>>())
        })?;
        ensure!(doomed.is_empty() || confirm(&doomed)?, "nothing is deleted");
    }
    let (workspaces, vms) = block_on(async {
        let (workspaces, vms) = tokio::join!(workspaces.delete_all(), vms.delete_all());
        Ok((workspaces?, vms?))
    })?;
    print(workspaces, vms, arguments.json)
}

/// Asks whether to delete these. Everything but yes is no.
fn confirm(doomed: &[WorkspaceInfo]) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    for info in doomed {
        let name = info.name.as_deref().unwrap_or_default();
        writeln!(out, "{} {} {name}", info.id, info.state)?;
    }
    write!(
        out,
        "Delete all of these, with their disks and snapshots? [y/N] "
    )?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim()))
}

fn print(workspaces: DeletedWorkspaces, vms: DeletedWorkspaces, json: bool) -> anyhow::Result<u8> {
    let failed = workspaces.failed.into_iter().chain(vms.failed);
    let failed: Vec<_> = failed.map(Failure::new).collect();
    let code = match failed.is_empty() {
        true => 0,
        false => INCOMPLETE,
    };
    if json {
        let failed: Value = failed.iter().map(Failure::as_json).collect();
        print_json(&json!({
            "workspaces": workspaces.deleted,
            "vms": vms.deleted,
            "failed": failed,
        }));
        return Ok(code);
    }
    for Failure { id, error } in &failed {
        report(&format!("{id} is not deleted: {}", describe_any(error)));
    }
    for id in workspaces.deleted.iter().chain(&vms.deleted) {
        writeln!(io::stdout(), "{id} is deleted")?;
    }
    Ok(code)
}

/// What could not be deleted, and why.
struct Failure {
    id: String,
    error: anyhow::Error,
}

impl Failure {
    fn new(failed: FailedDeletion) -> Self {
        Self {
            id: failed.id,
            error: failed.error.into(),
        }
    }

    fn as_json(&self) -> Value {
        json!({ "id": self.id, "error": error_as_json(&self.error) })
    }
}
