//! `vmcell run`: one VM for one command.

use vmcell::Vm;

use crate::{
    arguments::RunArguments,
    command::Job,
    exit_code::INCOMPLETE,
    files::{Pulls, Pushes, WORKSPACE},
    foreground,
    new_vm::{NewVm, VmOptions},
    runtime::block_on,
    signals::Signals,
};

pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<u8> {
    let RunArguments {
        environment,
        id,
        vcpu_count,
        mem_mib,
        push,
        pull,
        mut options,
    } = arguments;
    let pushes = Pushes::find(push)?;
    if !pushes.is_empty() {
        options.prefer_directory(WORKSPACE);
    }
    let errand = Errand {
        job: options.into_job()?,
        pulls: Pulls(pull),
    };
    let options = VmOptions {
        id,
        vcpu_count,
        mem_mib,
        pushes,
    };
    let new = NewVm::prepare(&environment, options)?;
    block_on(async move {
        let mut signals = Signals::new()?;
        let vm = tokio::select! {
            vm = new.boot() => vm?,
            code = signals.next() => return Ok(code),
        };
        let code = errand.run(&vm, &mut signals).await?;
        // The disk goes with the VM: there is nothing to make clean.
        vm.kill().await;
        Ok(code)
    })
}

/// What a VM is booted for.
struct Errand {
    job: Job,
    pulls: Pulls,
}

impl Errand {
    async fn run(self, vm: &Vm, signals: &mut Signals) -> anyhow::Result<u8> {
        let outcome = foreground::run(vm, self.job, signals).await?;
        if outcome.interrupted || self.pulls.is_empty() {
            return Ok(outcome.code);
        }
        // What it writes while it ends would be missed, or be half there.
        outcome.settle(vm).await;
        tokio::select! {
            complete = self.pulls.run(vm) => Ok(match outcome.code {
                0 if !complete => INCOMPLETE,
                code => code,
            }),
            code = signals.next() => Ok(code),
        }
    }
}
