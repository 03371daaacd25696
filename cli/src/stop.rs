//! `vmcell stop`: shuts down a VM.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use vmcell::{EndKind, Error, Vm, VmEnd};

use crate::{
    arguments::StopArguments,
    failure::{print_json, report},
    runtime::block_on,
    target,
};

/// How long the end of a VM may take to be reported to us, beyond the time that
/// stopping it may take.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The VM has ended, but was not shut down cleanly.
const NOT_CLEAN: u8 = 1;

pub(crate) fn stop(arguments: StopArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        let end = stop_vm(&vm).await?;
        if arguments.json {
            print_json(&json!({ "sandbox_id": vm.id(), "vm_end": end }));
        }
        Ok(report_end(&vm, end))
    })
}

/// Asks the owner to stop a VM, and waits until the VM has ended. Fails after a
/// timeout, because the owner may be suspended (SIGSTOP).
pub(crate) async fn stop_vm(vm: &Vm) -> anyhow::Result<VmEnd> {
    let stopping = async {
        match vm.stop().await {
            Ok(()) | Err(Error::Gone(_)) => Ok(vm.ended().await),
            Err(error) => Err(error),
        }
    };
    let stopped = timeout(Vm::STOP_TIMEOUT + REPORT_TIMEOUT, stopping).await;
    Ok(stopped.map_err(|_| owner_not_responding(vm))??)
}

/// Prints a message if a VM was not shut down cleanly, and returns the exit
/// code.
pub(crate) fn report_end(vm: &Vm, end: VmEnd) -> u8 {
    match end.kind() {
        EndKind::Clean => return 0,
        EndKind::Unknown => report(&format!(
            "unknown whether {:?} was shut down cleanly: {end}",
            vm.id()
        )),
        kind => report(&format!(
            "{:?} was not shut down cleanly ({kind}): {end}",
            vm.id()
        )),
    }
    NOT_CLEAN
}

pub(crate) fn owner_not_responding(vm: &Vm) -> anyhow::Error {
    anyhow::anyhow!(
        "the program that owns the VM {:?} does not end it: `vmcell ps` shows its PID",
        vm.id()
    )
}
