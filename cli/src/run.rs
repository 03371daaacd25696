//! `vmcell run`: boots a VM for one command.

use vmcell::Vm;
use vmcell_cli::signals::Signals;

use crate::{
    arguments::RunArguments,
    command::Job,
    exit_code::INCOMPLETE,
    failure::say,
    files::{Pulls, Pushes, WORKSPACE},
    foreground::{self, Outcome},
    new_vm::{Finished, NewVm, VmOptions},
    root::Root,
    runtime::block_on,
    service,
    surroundings::{Present, Surroundings},
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
    let pushes = Pushes::find(push)?;
    if !pushes.is_empty() {
        options.prefer_directory(WORKSPACE);
    }
    let job = options.into_job()?;
    let errand = Errand {
        surroundings: Surroundings::new(services.0, &job.start, publish)?,
        job,
        pulls: Pulls {
            wanted: pull,
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
    let root = Root::prepare(&environment, disk)?;
    let new = NewVm { root, options };
    block_on(async move {
        let mut signals = Signals::all()?;
        let work = async |vm: &Vm, signals: &mut Signals| errand.run(vm, signals).await;
        new.run(&mut signals, work).await
    })
}

/// The work that a VM is booted for.
struct Errand {
    surroundings: Surroundings,
    job: Job,
    pulls: Pulls,
}

impl Errand {
    async fn run(self, vm: &Vm, signals: &mut Signals) -> anyhow::Result<Finished> {
        let present = tokio::select! {
            present = self.surroundings.set_up(vm) => present?,
            code = signals.next() => return Ok(code.into()),
        };
        let outcome = foreground::run(vm, self.job, signals).await?;
        if outcome.interrupted {
            return Ok(outcome.code.into());
        }
        tokio::select! {
            finished = finish(vm, outcome, present, self.pulls) => Ok(finished),
            code = signals.next() => Ok(code.into()),
        }
    }
}

/// Collects the status of the services, stops them, and pulls files out of the
/// VM.
async fn finish(vm: &Vm, mut outcome: Outcome, present: Present, pulls: Pulls) -> Finished {
    let services = present.look().await;
    let result = outcome.result.take().map(|mut result| {
        present.add_to(&mut result, &services);
        result
    });
    if result.is_none() {
        let notes = services.iter().filter_map(service::note);
        notes.for_each(|note| say(&note));
    }
    if !pulls.is_empty() {
        // Wait, so that files which the command writes while it ends are
        // complete.
        outcome.settle(vm).await;
    }
    present.stop().await;
    let code = match outcome.code {
        code if pulls.run(vm).await => code,
        0 => INCOMPLETE,
        code => code,
    };
    Finished { code, result }
}
