//! `vmcell run`: one VM for one command.

use std::path::PathBuf;

use vmcell::{Error, Vm};

use crate::{
    arguments::RunArguments, command::Job, environment, foreground, runtime::block_on,
    signals::Signals,
};

pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<u8> {
    let RunArguments {
        environment,
        id,
        vcpu_count,
        mem_mib,
        options,
    } = arguments;
    let job = options.into_job()?;
    let image = environment::image(&environment)?;
    block_on(async move {
        let mut signals = Signals::new()?;
        // Dropping the future that boots ends the VM.
        let vm = tokio::select! {
            vm = boot(image, id, vcpu_count, mem_mib) => vm?,
            code = signals.next() => return Ok(code),
        };
        run_in(vm, job, &mut signals).await
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

async fn run_in(vm: Vm, job: Job, signals: &mut Signals) -> anyhow::Result<u8> {
    let outcome = foreground::run(&vm, job, signals).await?;
    // The disk goes with the VM: there is nothing to make clean.
    vm.kill().await;
    Ok(outcome.code)
}
