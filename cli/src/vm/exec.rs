//! `vmcell vm exec`: runs a command in a VM, and deletes the VM.

use serde_json::json;
use vmcell::workspace::Workspace;
use vmcell_cli::signals::Signals;

use super::{arguments::ExecArguments, find, in_terms_of_vms, reap::delete_if_there};
use crate::{
    exit_code::{TOOL_FAILED, of_error},
    failure::{describe_any, error_as_json, print_json, report},
    foreground,
    runtime::block_on,
    target::Target,
};

pub(super) fn exec(arguments: ExecArguments) -> anyhow::Result<u8> {
    let json = arguments.command.options.json;
    let prepared = arguments.command.prepare()?;
    block_on(async move {
        // Those that end this program, too: it has to clean up.
        let mut signals = Signals::all()?;
        let vm = find(&arguments.vm.id).await?;
        let target = Target::of_own_vm(vm.clone(), vm.vm().await?);
        // From here on, the VM is deleted whatever happens.
        let mut outcome = foreground::run(&target, prepared, &mut signals).await;
        let is_deleted = delete(vm, &mut signals).await;
        if json {
            let mut result = match &mut outcome {
                // There is none of a command that was interrupted.
                Ok(outcome) => outcome.result.take().unwrap_or(json!({})),
                Err(error) => json!({ "error": error_as_json(error) }),
            };
            target.add_to(&mut result);
            result["deleted"] = is_deleted.into();
            print_json(&result);
        }
        match outcome {
            Ok(outcome) if outcome.code == 0 && !is_deleted => Ok(TOOL_FAILED),
            Ok(outcome) => Ok(outcome.code),
            // It was printed.
            Err(error) if json => Ok(error.downcast_ref().map_or(TOOL_FAILED, of_error)),
            Err(error) => Err(error),
        }
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
