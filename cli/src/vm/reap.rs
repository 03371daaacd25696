//! `vmcell vm reap-expired`.

use vmcell::{
    Error,
    workspace::{CommandState, Workspace, WorkspaceError, Workspaces},
};

use super::open;
use crate::kept_vm::print_reaped;

/// Deletes the VMs whose time or command is over, and prints their ids.
pub(super) async fn reap_expired(json: bool) -> anyhow::Result<u8> {
    let vms = open()?;
    let mut reaped = vms.reap_expired().await?;
    for id in used_up(&vms).await? {
        delete_if_there(vms.get(&id).await).await?;
        reaped.push(id);
    }
    print_reaped(&reaped, json)
}

/// Returns which VMs have run their command, so that only the death of `exec` can
/// have kept it from deleting them.
async fn used_up(vms: &Workspaces) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for info in vms.list().await? {
        if info.command_count == 0 {
            continue;
        }
        let history = match vms.get(&info.id).await {
            Ok(vm) => vm.history().await?,
            // It was deleted meanwhile.
            Err(_) => continue,
        };
        let runs = |state: &CommandState| *state == CommandState::Running;
        if !history.iter().any(|command| runs(&command.state)) {
            ids.push(info.id);
        }
    }
    Ok(ids)
}

/// Deletes a VM, unless somebody else has.
pub(super) async fn delete_if_there(vm: Result<Workspace, Error>) -> Result<(), Error> {
    let deleted = match vm {
        Ok(vm) => vm.delete().await,
        Err(error) => Err(error),
    };
    match deleted {
        Err(Error::Workspace(WorkspaceError::NotFound { .. })) => Ok(()),
        deleted => deleted,
    }
}
