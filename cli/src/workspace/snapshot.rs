//! `vmcell workspace snapshot`, `reset` and `fork`.

use std::io::{self, Write as _};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use vmcell::workspace::{BASELINE, WorkspaceSnapshot};
use vmcell_cli::{
    options::size::human_readable,
    show::{Spinner, Table},
};

use super::{WORKSPACES, arguments::WorkspaceId, find, info};
use crate::failure::print_json;

#[derive(Debug, Args)]
pub(super) struct SnapshotArguments {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// Take a snapshot of the disk of a running or stopped workspace.
    Create(NamedSnapshot),
    /// List the snapshots, the oldest first. `baseline` is the workspace as it
    /// was created.
    List(WorkspaceId),
    /// Delete a snapshot.
    Delete(NamedSnapshot),
}

/// A snapshot of a workspace.
#[derive(Debug, Args)]
struct NamedSnapshot {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// Name of the snapshot: letters, digits, `-`, `_` and `.`.
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct ResetArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    source: SnapshotOption,
}

#[derive(Debug, Args)]
pub(super) struct ForkArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    source: SnapshotOption,
    /// Name of the new workspace. It has the labels of the other one.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print only the ID of the new workspace.
    #[arg(long, conflicts_with = "json")]
    id_only: bool,
}

#[derive(Debug, Args)]
pub(super) struct SnapshotOption {
    /// Name of the snapshot, as listed by `vmcell workspace snapshot list`;
    /// `baseline` is the workspace as it was created.
    #[arg(long, value_name = "NAME", default_value = BASELINE)]
    pub(super) snapshot: String,
}

pub(super) async fn snapshot(arguments: SnapshotArguments, json: bool) -> anyhow::Result<u8> {
    match arguments.command {
        SnapshotCommand::Create(snapshot) => create(&snapshot, json).await,
        SnapshotCommand::List(workspace) => list(&workspace.id, json).await,
        SnapshotCommand::Delete(snapshot) => delete(&snapshot, json).await,
    }
}

async fn create(arguments: &NamedSnapshot, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let snapshot = workspace.snapshot(&arguments.name).await?;
    match json {
        true => print_json(&json!({
            "workspace_id": workspace.id(),
            "snapshot": as_json(&snapshot),
        })),
        false => writeln!(
            io::stdout(),
            "{} has the snapshot {}",
            workspace.id(),
            snapshot.name
        )?,
    }
    Ok(0)
}

async fn list(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    let snapshots = workspace.snapshots().await?;
    if json {
        let rows: Value = snapshots.iter().map(as_json).collect();
        print_json(&json!({ "workspace_id": workspace.id(), "snapshots": rows }));
        return Ok(0);
    }
    let mut table = Table::new(["NAME", "CREATED", "SIZE"]);
    for snapshot in snapshots {
        let created = info::date(snapshot.created);
        table.add([snapshot.name, created, human_readable(snapshot.bytes)]);
    }
    table.print_to_stdout()?;
    Ok(0)
}

async fn delete(arguments: &NamedSnapshot, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let name = &arguments.name;
    workspace.delete_snapshot(name).await?;
    match json {
        true => print_json(&json!({
            "workspace_id": workspace.id(),
            "snapshot_name": name,
            "deleted": true,
        })),
        false => writeln!(io::stdout(), "the snapshot {name} is deleted")?,
    }
    Ok(0)
}

pub(super) async fn reset(arguments: ResetArguments, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let resetting = workspace.reset(&arguments.source.snapshot);
    let info = Spinner::show_during("resetting the workspace", resetting).await?;
    WORKSPACES.print(&info, json)
}

pub(super) async fn fork(arguments: ForkArguments, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let fork = workspace.fork(&arguments.source.snapshot, |new| match arguments.name {
        Some(name) => new.name(name),
        None => new,
    });
    let fork = fork.await?;
    WORKSPACES.print_new(&fork, arguments.id_only, json).await
}

fn as_json(snapshot: &WorkspaceSnapshot) -> Value {
    json!({
        "snapshot_name": snapshot.name,
        "kind": if snapshot.is_baseline() { "baseline" } else { "named" },
        "created_at": info::date(snapshot.created),
        "bytes": snapshot.bytes,
        "pause_seconds": snapshot.pause.map(|pause| pause.as_secs_f64()),
    })
}
