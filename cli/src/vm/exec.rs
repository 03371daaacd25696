//! `vmcell vm exec`: runs a command in a VM, and deletes the VM.

use vmcell::workspace::Workspace;
use vmcell_cli::signals::Signals;

use super::{arguments::ExecArguments, find, in_terms_of_vms, lifecycle::delete_if_there};
use crate::{
    exit_code::TOOL_FAILED,
    failure::{describe_any, print_json, report},
    foreground,
    runtime::block_on,
    target::Target,
};

pub(super) fn exec(arguments: ExecArguments) -> anyhow::Result<u8> {
    let prepared = arguments.options.prepare(arguments.command)?;
    block_on(async move {
        // Those that end this program, too: it has to clean up.
        let mut signals = Signals::all()?;
        let vm = find(&arguments.vm.id).await?;
        let target = Target::of_own_vm(vm.clone(), vm.vm().await?);
        // From here on, the VM is deleted whatever happens.
        let outcome = foreground::run(&target, prepared, &mut signals).await;
        let is_deleted = delete(vm, &mut signals).await;
        let mut outcome = outcome?;
        if let Some(result) = &mut outcome.result {
            target.add_to(result);
            result["deleted"] = is_deleted.into();
            print_json(result);
        }
        Ok(match outcome.code {
            0 if !is_deleted => TOOL_FAILED,
            code => code,
        })
    })
}

/// Deletes a VM. Returns whether it is gone; else a message says why not.
async fn delete(vm: Workspace, signals: &mut Signals) -> bool {
    let id = vm.id().to_owned();
    let reason = tokio::select! {
        deleted = delete_if_there(Ok(vm)) => match deleted {
            Ok(()) => return true,
            Err(error) => describe_any(&in_terms_of_vms(error.into())),
        },
        _ = signals.next() => "interrupted".to_owned(),
    };
    report(&format!(
        "the VM {id} is not deleted: {reason}. `vmcell vm delete {id}` deletes it"
    ));
    false
}
