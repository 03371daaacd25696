//! `vmcell vm`: VMs for one command. They are workspaces without a name, kept
//! apart from those of the user, so that `vm exec` deletes none of these.

mod arguments;
mod create;
mod exec;
mod info;
mod network;
mod reap;

pub(crate) use arguments::VmArguments;

use arguments::VmCommand;
use vmcell::{
    Error,
    workspace::{Workspace, WorkspaceError, Workspaces},
};

use crate::{failure::Reworded, kept_vm::KeptVms, runtime::block_on, workspace::keeper};

pub(crate) fn vm(arguments: VmArguments) -> anyhow::Result<u8> {
    let json = arguments.json;
    let done = match arguments.command {
        VmCommand::Create(arguments) => create::create(*arguments, json),
        VmCommand::List => block_on(info::list(json)),
        VmCommand::Status(arguments) => block_on(info::status(&arguments.id, json)),
        VmCommand::Start(arguments) => block_on(VMS.start(&arguments.id, json)),
        VmCommand::Exec(arguments) => exec::exec(*arguments),
        VmCommand::Stop(arguments) => block_on(VMS.stop(&arguments.id, json)),
        VmCommand::Delete(arguments) => block_on(VMS.delete(&arguments.id, json)),
        VmCommand::Network(arguments) => block_on(network::network(&arguments.id, json)),
        VmCommand::ReapExpired => block_on(reap::reap_expired(json)),
    };
    done.map_err(in_terms_of_vms)
}

/// The folder of these VMs, beside that of the workspaces.
pub(crate) const FOLDER: &str = "vms";

/// Returns the VMs of this user, which this program runs in processes of their
/// own.
pub(crate) fn open() -> anyhow::Result<Workspaces> {
    let vms = Workspaces::open_apart(FOLDER)?.id_prefix("vm");
    Ok(vms.keeper(keeper()?))
}

const VMS: KeptVms = KeptVms {
    noun: "VM",
    id_key: "vm_id",
    open,
    as_json: info::as_json,
};

/// Finds a VM.
async fn find(id: &str) -> anyhow::Result<Workspace> {
    VMS.find(id).await
}

/// Says VM where an error of the library says workspace, and what to do next.
fn in_terms_of_vms(error: anyhow::Error) -> anyhow::Error {
    let (error, text) = match error.downcast() {
        Ok(Error::Workspace(WorkspaceError::NotFound { id })) => {
            let text =
                format!("there is no VM {id:?}: `vmcell vm list` lists those for one command");
            (Error::NoSuchVm { id }, text)
        }
        Ok(Error::Workspace(error)) => {
            let text = match &error {
                WorkspaceError::State { id, state, .. } => {
                    format!("the VM {id} is {state}: `vmcell vm start {id}` starts it")
                }
                WorkspaceError::IdTaken { id } => format!(
                    "there is a VM with the id {id:?}: choose another one, or `vmcell vm delete \
                     {id}` first"
                ),
                other => other.to_string(),
            };
            (Error::Workspace(error), text)
        }
        Ok(other) => return other.into(),
        Err(other) => return other,
    };
    anyhow::Error::new(error).context(Reworded(text))
}
