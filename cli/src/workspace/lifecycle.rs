//! `vmcell workspace start`, `stop`, `pause`, `resume`, `delete`, `touch` and
//! `reap-expired`.

use std::io::{self, Write};

use serde_json::json;
use vmcell::{
    Error,
    workspace::{Workspace, WorkspaceError, WorkspaceState},
};
use vmcell_cli::show::Spinner;

use super::{find, info, open};
use crate::failure::print_json;

pub(super) async fn start(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    Spinner::show_during("starting the workspace", workspace.start()).await?;
    print_state(&workspace, json).await
}

pub(super) async fn stop(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    Spinner::show_during("stopping the workspace", workspace.stop()).await?;
    print_state(&workspace, json).await
}

pub(super) async fn pause(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    Spinner::show_during("pausing the workspace", workspace.pause()).await?;
    print_state(&workspace, json).await
}

pub(super) async fn resume(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    let state = workspace.info().await?.state;
    if state == WorkspaceState::Stopped {
        return Err(Error::Workspace(WorkspaceError::State {
            id: workspace.id().to_owned(),
            state,
            needed: "paused: `vmcell workspace start` starts it",
        })
        .into());
    }
    Spinner::show_during("resuming the workspace", workspace.start()).await?;
    print_state(&workspace, json).await
}

pub(super) async fn delete(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    let id = workspace.id().to_owned();
    workspace.delete().await?;
    match json {
        true => print_json(&json!({ "workspace_id": id, "deleted": true })),
        false => writeln!(io::stdout(), "{id} is deleted")?,
    }
    Ok(0)
}

async fn print_state(workspace: &Workspace, json: bool) -> anyhow::Result<u8> {
    info::print(&workspace.info().await?, json)?;
    Ok(0)
}

/// Records that somebody uses a workspace.
pub(super) async fn touch(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    workspace.touch().await?;
    print_state(&workspace, json).await
}

/// Deletes the workspaces whose time is over, and prints their ids.
pub(super) async fn reap_expired(json: bool) -> anyhow::Result<u8> {
    let reaped = open()?.reap_expired().await?;
    if json {
        print_json(&json!({ "deleted": reaped }));
        return Ok(0);
    }
    for id in reaped {
        writeln!(io::stdout(), "{id}")?;
    }
    Ok(0)
}
