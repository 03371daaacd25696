//! `vmcell vm start`, `stop`, `delete` and `reap-expired`.

use std::io::{self, Write};

use serde_json::json;
use vmcell::{
    Error,
    workspace::{CommandState, Workspace, WorkspaceError, Workspaces},
};
use vmcell_cli::show::Spinner;

use super::{find, info, open};
use crate::failure::print_json;

pub(super) async fn start(id: &str, json: bool) -> anyhow::Result<u8> {
    let vm = find(id).await?;
    Spinner::show_during("starting the VM", vm.start()).await?;
    print_state(&vm, json).await
}

pub(super) async fn stop(id: &str, json: bool) -> anyhow::Result<u8> {
    let vm = find(id).await?;
    Spinner::show_during("stopping the VM", vm.stop()).await?;
    print_state(&vm, json).await
}

async fn print_state(vm: &Workspace, json: bool) -> anyhow::Result<u8> {
    info::print(&vm.info().await?, json)?;
    Ok(0)
}

pub(super) async fn delete(id: &str, json: bool) -> anyhow::Result<u8> {
    let vm = find(id).await?;
    let id = vm.id().to_owned();
    vm.delete().await?;
    match json {
        true => print_json(&json!({ "vm_id": id, "deleted": true })),
        false => writeln!(io::stdout(), "{id} is deleted")?,
    }
    Ok(0)
}

/// Deletes the VMs whose time or command is over, and prints their ids.
pub(super) async fn reap_expired(json: bool) -> anyhow::Result<u8> {
    let vms = open()?;
    let mut reaped = vms.reap_expired().await?;
    for id in used_up(&vms).await? {
        delete_if_there(vms.get(&id).await).await?;
        reaped.push(id);
    }
    if json {
        print_json(&json!({ "deleted": reaped }));
        return Ok(0);
    }
    for id in reaped {
        writeln!(io::stdout(), "{id}")?;
    }
    Ok(0)
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
