//! `vmcell workspace pause`, `resume`, `touch` and `reap-expired`.

use vmcell::{
    Error,
    workspace::{WorkspaceError, WorkspaceState},
};
use vmcell_cli::show::Spinner;

use super::{WORKSPACES, find, open};
use crate::kept_vm::print_reaped;

pub(super) async fn pause(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    Spinner::show_during("pausing the workspace", workspace.pause()).await?;
    WORKSPACES.print(&workspace.info().await?, json)
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
    WORKSPACES.print(&workspace.info().await?, json)
}

/// Records that somebody uses a workspace.
pub(super) async fn touch(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?;
    workspace.touch().await?;
    WORKSPACES.print(&workspace.info().await?, json)
}

/// Deletes the workspaces whose time is over, and prints their ids.
pub(super) async fn reap_expired(json: bool) -> anyhow::Result<u8> {
    print_reaped(&open()?.reap_expired().await?, json)
}
