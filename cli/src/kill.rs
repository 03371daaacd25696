//! `vmcell kill`: ends a VM, or a process in it.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use vmcell::{Error, ProcessSelector, Vm, VmEnd};

use crate::{
    arguments::KillArguments,
    failure::{print_json, report},
    runtime::block_on,
    stop::{owner_not_responding, report_end, stop_vm},
    target,
};

/// How long the end of a killed VM may take to be reported to us.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Not all descendants of a killed process are known to have ended.
const DESCENDANTS_LEFT: u8 = 1;

pub(crate) fn kill(arguments: KillArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        match (arguments.process, arguments.signal) {
            (None, _) if vm.keeps_disk() && !arguments.force => {
                let end = stop_vm(&vm).await?;
                print_end(&vm, end, arguments.json);
                Ok(report_end(&vm, end))
            }
            (None, _) => {
                let end = kill_vm(&vm).await?;
                print_end(&vm, end, arguments.json);
                Ok(0)
            }
            (Some(process), None) => kill_tree(&vm, process, arguments.json).await,
            (Some(process), Some(signal)) => {
                vm.processes().signal(process, signal).await?;
                if arguments.json {
                    print_json(&json!({ "sandbox_id": vm.id(), "signal": signal }));
                }
                Ok(0)
            }
        }
    })
}

fn print_end(vm: &Vm, end: VmEnd, json: bool) {
    if json {
        print_json(&json!({ "sandbox_id": vm.id(), "vm_end": end }));
    }
}

async fn kill_vm(vm: &Vm) -> anyhow::Result<VmEnd> {
    let asked = vm.kill().await;
    // The owner does the killing, and it may be suspended (SIGSTOP). One that
    // does not answer may have ended, and its VM with it.
    match timeout(REPORT_TIMEOUT, vm.ended()).await {
        Ok(end) => Ok(end),
        Err(_) => {
            asked?;
            Err(owner_not_responding(vm))
        }
    }
}

async fn kill_tree(vm: &Vm, process: ProcessSelector, json: bool) -> anyhow::Result<u8> {
    let name = process.to_string();
    let exit = match vm.processes().kill(process).await {
        // The VM ended together with its command, so nothing is left.
        Err(Error::Gone(_)) => return Ok(0),
        exit => exit?,
    };
    if json {
        print_json(&json!({ "sandbox_id": vm.id(), "exit": exit }));
    }
    let problem = match exit.tree_ended {
        Some(true) => return Ok(0),
        Some(false) => "not all its descendants have",
        None => "the guest does not report whether all its descendants have",
    };
    report(&format!("{name} has ended, but {problem}"));
    Ok(DESCENDANTS_LEFT)
}
