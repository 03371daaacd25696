//! `vmcell workspace exec`: runs a command in a workspace, which goes on.

use vmcell::workspace::WorkspaceState;

use super::{arguments::ExecArguments, find};
use crate::{exec::in_foreground, runtime::block_on, target::Target};

pub(super) fn exec(arguments: ExecArguments) -> anyhow::Result<u8> {
    let prepared = arguments.command.prepare()?;
    block_on(async move {
        let workspace = find(&arguments.workspace.id).await?;
        let state = workspace.info().await?.state;
        let vm = match state {
            WorkspaceState::Paused if !arguments.no_resume => workspace.start().await?,
            _ => workspace.vm().await?,
        };
        in_foreground(&Target::of_workspace(workspace, vm), prepared).await
    })
}
