//! `vmcell run`: one VM for one command.

use std::path::PathBuf;

use vmcell::{Error, Vm};

use crate::{
    arguments::RunArguments,
    command::Job,
    environment,
    exit_code::INCOMPLETE,
    files::{Pulls, Pushes, WORKSPACE, keep_baseline},
    foreground,
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
        // Others can only ask for changes if they know the VM.
        compared: id.is_some() || !pushes.is_empty(),
        pushes,
        job: options.into_job()?,
        pulls: Pulls(pull),
    };
    let image = environment::image(&environment)?;
    block_on(async move {
        let mut signals = Signals::new()?;
        // Dropping the future that boots ends the VM.
        let vm = tokio::select! {
            vm = boot(image, id, vcpu_count, mem_mib) => vm?,
            code = signals.next() => return Ok(code),
        };
        let code = errand.run(&vm, &mut signals).await?;
        // The disk goes with the VM: there is nothing to make clean.
        vm.kill().await;
        Ok(code)
    })
}

async fn boot(
    image: PathBuf,
    id: Option<String>,
    vcpu_count: u32,
    mem_mib: u32,
) -> Result<Vm, Error> {
    let mut builder = Vm::builder()
        .image(image)
        .vcpus(vcpu_count)
        .memory_mib(mem_mib);
    if let Some(id) = id {
        builder = builder.id(id);
    }
    builder.start().await
}

/// What a VM is booted for.
struct Errand {
    pushes: Pushes,
    /// Whether somebody may want to know what the command changes.
    compared: bool,
    job: Job,
    pulls: Pulls,
}

impl Errand {
    async fn run(self, vm: &Vm, signals: &mut Signals) -> anyhow::Result<u8> {
        let preparing = async {
            self.pushes.run(vm).await?;
            match self.compared {
                true => keep_baseline(vm).await,
                false => Ok(()),
            }
        };
        tokio::select! {
            prepared = preparing => prepared?,
            code = signals.next() => return Ok(code),
        }
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
