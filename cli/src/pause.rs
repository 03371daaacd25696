//! `vmcell pause` and `vmcell resume`: let a VM stand still, and go on.

use serde_json::json;
use vmcell::{Vm, WhilePaused};

use crate::{
    arguments::{PauseArguments, ResumeArguments},
    failure::print_json,
    runtime::block_on,
    target,
};

pub(crate) fn pause(arguments: PauseArguments) -> anyhow::Result<u8> {
    let requests = match arguments.refuse {
        true => WhilePaused::Fail,
        false => WhilePaused::Wait,
    };
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        vm.pause_with(requests).await?;
        print_state(&vm, "paused", arguments.json);
        Ok(0)
    })
}

pub(crate) fn resume(arguments: ResumeArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        vm.resume().await?;
        print_state(&vm, "running", arguments.json);
        Ok(0)
    })
}

fn print_state(vm: &Vm, state: &str, json: bool) {
    if json {
        print_json(&json!({ "sandbox_id": vm.id(), "state": state }));
    }
}
