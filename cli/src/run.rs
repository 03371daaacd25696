//! `vmcell run`: boots a VM for one command.

use vmcell::Vm;
use vmcell_cli::signals::Signals;

use crate::{
    arguments::RunArguments,
    boot_disk::BootDisk,
    command::PreparedCommand,
    exit_code::INCOMPLETE,
    failure::report,
    files::{Pulls, Pushes, WORKSPACE},
    foreground::{self, Outcome},
    new_vm::{NewVm, VmOptions, WorkResult},
    run_services::{RunServices, StartedServices},
    runtime::block_on,
    service,
};

pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<u8> {
    let RunArguments {
        environment,
        disk,
        id,
        vcpu_count,
        mem_mib,
        machine,
        push,
        pull,
        allow_symlink,
        services,
        publish,
        mut options,
    } = arguments;
    let pushes = Pushes::check(push)?;
    if !pushes.is_empty() {
        options.set_default_directory(WORKSPACE);
    }
    let prepared = options.prepare()?;
    let plan = RunPlan {
        services: RunServices::new(services.0, &prepared.start, publish)?,
        prepared,
        pulls: Pulls {
            paths: pull,
            allow_symlink,
        },
    };
    let options = VmOptions {
        id,
        vcpu_count,
        mem_mib,
        machine,
        pushes,
    };
    let disk = BootDisk::prepare(&environment, disk)?;
    let new = NewVm { disk, options };
    block_on(async move {
        let mut signals = Signals::all()?;
        let work = async |vm: &Vm, signals: &mut Signals| plan.run(vm, signals).await;
        new.run(&mut signals, work).await
    })
}

/// The work that a VM is booted for.
struct RunPlan {
    services: RunServices,
    prepared: PreparedCommand,
    pulls: Pulls,
}

impl RunPlan {
    async fn run(self, vm: &Vm, signals: &mut Signals) -> anyhow::Result<WorkResult> {
        let started = tokio::select! {
            started = self.services.start(vm) => started?,
            code = signals.next() => return Ok(code.into()),
        };
        let outcome = foreground::run(vm, self.prepared, signals).await?;
        if outcome.interrupted {
            return Ok(outcome.code.into());
        }
        tokio::select! {
            finished = finish(vm, outcome, started, self.pulls) => Ok(finished),
            code = signals.next() => Ok(code.into()),
        }
    }
}

/// Collects the status of the services, stops them, and pulls files out of the
/// VM.
async fn finish(
    vm: &Vm,
    mut outcome: Outcome,
    started: StartedServices,
    pulls: Pulls,
) -> WorkResult {
    let services = started.statuses().await;
    let result = outcome.result.take().map(|mut result| {
        started.add_to(&mut result, &services);
        result
    });
    if result.is_none() {
        let warnings = services.iter().filter_map(service::warning);
        warnings.for_each(|warning| report(&warning));
    }
    if !pulls.is_empty() {
        // Wait, so that files which the command writes while it ends are
        // complete.
        outcome.wait_until_ended(vm).await;
    }
    started.stop().await;
    let code = match outcome.code {
        code if pulls.run(vm).await => code,
        0 => INCOMPLETE,
        code => code,
    };
    WorkResult { code, result }
}
