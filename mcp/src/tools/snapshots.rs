//! Snapshots of a workspace's disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::workspace::WorkspaceSnapshot;

use super::workspaces::{WorkspaceId, date};
use crate::{call::Call, failure::Failure, hints::Hints, tool::Tool};

/// A snapshot of a workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    workspace_id: String,
    /// Letters, digits, `-`, `_` and `.`.
    snapshot_name: String,
}

#[derive(Serialize, JsonSchema)]
struct Snapshot {
    snapshot_name: String,
    /// baseline or named.
    kind: &'static str,
    created_at: String,
    bytes: u64,
}

impl From<WorkspaceSnapshot> for Snapshot {
    fn from(snapshot: WorkspaceSnapshot) -> Self {
        Self {
            kind: match snapshot.is_baseline() {
                true => "baseline",
                false => "named",
            },
            created_at: date(snapshot.created),
            bytes: snapshot.bytes,
            snapshot_name: snapshot.name,
        }
    }
}

pub(super) struct SnapshotCreate;

#[derive(Serialize, JsonSchema)]
pub(super) struct Created {
    workspace_id: String,
    snapshot: Snapshot,
}

impl Tool for SnapshotCreate {
    const NAME: &'static str = "snapshot_create";
    const TITLE: &'static str = "Take a snapshot of a workspace";
    const DESCRIPTION: &'static str = "\
Take a snapshot of the disk of a workspace, to which workspace_reset can go back.";
    const HINTS: Hints = Hints::ADDS;
    type Input = Named;
    type Output = Created;

    async fn run(call: Call, input: Named) -> Result<Created, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        let snapshot = workspace.snapshot(&input.snapshot_name).await?;
        Ok(Created {
            workspace_id: workspace.id().to_owned(),
            snapshot: snapshot.into(),
        })
    }
}

pub(super) struct SnapshotList;

#[derive(Serialize, JsonSchema)]
pub(super) struct List {
    workspace_id: String,
    snapshots: Vec<Snapshot>,
}

impl Tool for SnapshotList {
    const NAME: &'static str = "snapshot_list";
    const TITLE: &'static str = "List snapshots of a workspace";
    const DESCRIPTION: &'static str = "\
List the snapshots of a workspace, the oldest first. `baseline` is the workspace as it was created.";
    const HINTS: Hints = Hints::READS;
    type Input = WorkspaceId;
    type Output = List;

    async fn run(call: Call, input: WorkspaceId) -> Result<List, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        let snapshots = workspace.snapshots().await?;
        Ok(List {
            workspace_id: workspace.id().to_owned(),
            snapshots: snapshots.into_iter().map(Snapshot::from).collect(),
        })
    }
}

pub(super) struct SnapshotDelete;

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    workspace_id: String,
    snapshot_name: String,
    deleted: bool,
}

impl Tool for SnapshotDelete {
    const NAME: &'static str = "snapshot_delete";
    const TITLE: &'static str = "Delete a snapshot of a workspace";
    const DESCRIPTION: &'static str = "\
Delete a snapshot of a workspace. Its files are as they were; the baseline cannot be deleted.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = Named;
    type Output = Deleted;

    async fn run(call: Call, input: Named) -> Result<Deleted, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        workspace.delete_snapshot(&input.snapshot_name).await?;
        Ok(Deleted {
            workspace_id: workspace.id().to_owned(),
            snapshot_name: input.snapshot_name,
            deleted: true,
        })
    }
}
