//! `vmcell run`: one VM for one command.

use vmcell::Vm;
use vmcell_cli::signals::Signals;

use crate::{
    arguments::RunArguments,
    command::Job,
    exit_code::INCOMPLETE,
    failure::{print_json, say},
    files::{Pulls, Pushes, WORKSPACE},
    foreground::{self, Outcome},
    new_vm::{NewVm, VmOptions},
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
        let mut signals = Signals::new()?;
        let own = tokio::select! {
            own = new.boot() => own?,
            code = signals.next() => return Ok(code),
        };
        let code = errand.run(&own.vm, &mut signals).await?;
        own.end().await?;
        Ok(code)
    })
}

/// What a VM is booted for.
struct Errand {
    surroundings: Surroundings,
    job: Job,
    pulls: Pulls,
}

impl Errand {
    async fn run(self, vm: &Vm, signals: &mut Signals) -> anyhow::Result<u8> {
        let present = tokio::select! {
            present = self.surroundings.set_up(vm) => present?,
            code = signals.next() => return Ok(code),
        };
        let outcome = foreground::run(vm, self.job, signals).await?;
        if outcome.interrupted {
            return Ok(outcome.code);
        }
        tokio::select! {
            code = finish(vm, outcome, present, self.pulls) => Ok(code),
            code = signals.next() => Ok(code),
        }
    }
}

/// Tells what came of the command, ends what was around it, and brings out what
/// is wanted.
async fn finish(vm: &Vm, mut outcome: Outcome, present: Present, pulls: Pulls) -> u8 {
    let services = present.look().await;
    match outcome.result.take() {
        Some(mut result) => {
            present.add_to(&mut result, &services);
            print_json(&result);
        }
        None => services
            .iter()
            .filter_map(service::note)
            .for_each(|note| say(&note)),
    }
    if !pulls.is_empty() {
        // What it writes while it ends would be missed, or be half there.
        outcome.settle(vm).await;
    }
    present.stop().await;
    match outcome.code {
        code if pulls.run(vm).await => code,
        0 => INCOMPLETE,
        code => code,
    }
}
