//! `vmcell workspace diff`: prints what has changed in a workspace.

use clap::Args;
use serde_json::json;

use super::{arguments::WorkspaceId, find, snapshot::SnapshotOption};
use crate::{failure::print_json, files::print_changes};

#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    since: SnapshotOption,
    /// Print only the kind and the path of each change.
    #[arg(long)]
    name_status: bool,
}

pub(super) async fn diff(arguments: DiffArguments, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let snapshot = arguments.since.snapshot;
    let diff = workspace.diff(&snapshot).await?;
    if json {
        print_json(&json!({
            "workspace_id": workspace.id(),
            "snapshot": snapshot,
            "changes": diff.files(),
        }));
        return Ok(0);
    }
    print_changes(&diff, arguments.name_status)
}
