//! `vmcell run`: boots a VM for one command.

use std::io::{self, Write};

use vmcell::{Command, Vm};
use vmcell_cli::signals::Signals;
use vmcell_rootfs::oci::Defaults;

use crate::{
    arguments::RunArguments,
    background,
    command::PreparedCommand,
    environment,
    exit_code::{INCOMPLETE, of_exit},
    failure::report,
    files::{Pulls, Pushes, WORKSPACE},
    foreground::{self, Outcome},
    new_vm::{NewVm, VmOptions, WorkResult},
    run_services::{RunServices, StartedServices},
    runtime::block_on,
    service, shell,
    target::Target,
    vm_source::VmSource,
};

pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<u8> {
    let RunArguments {
        environment,
        disk,
        source,
        id,
        size,
        ttl_seconds,
        tty,
        detach,
        background,
        machine,
        quotas,
        network,
        push,
        pull,
        allow_symlink,
        services,
        publish,
        mut options,
        command,
        ..
    } = arguments;
    if tty {
        shell::check_terminal()?;
    }
    let pushes = Pushes::check(push)?;
    if !pushes.is_empty() {
        options.set_default_directory(WORKSPACE);
    }
    if background {
        options.prepare_for_background();
    }
    options.set_default_variables(network.variables());
    let network = network.policy(!publish.is_empty())?;
    let mut boot = environment.clone();
    let prepared = options.prepare_in(command, || {
        if source.is_saved() {
            return Ok(Defaults::default());
        }
        let found = environment::find(&environment)?;
        boot = found.image.into();
        Ok(found.defaults)
    })?;
    let prepared = prepared.grant_secrets()?;
    let plan = RunPlan {
        services: RunServices::new(services.0, &prepared.start, publish)?,
        prepared,
        pulls: Pulls {
            paths: pull,
            allow_symlink,
        },
        mode: match (tty, background) {
            (true, _) => Mode::Terminal,
            (_, true) => Mode::Background,
            _ => Mode::Foreground,
        },
    };
    let options = VmOptions {
        id,
        vcpu_count: size.vcpu_count,
        mem_mib: size.mem_mib,
        machine,
        quotas: quotas.quotas(),
        network,
        pushes,
        time_to_live: ttl_seconds,
    };
    let source = VmSource::prepare(&boot, disk, size.disk_mib, &source)?;
    if detach && !background {
        // All that can be checked without a VM is, and the image is built.
        return background::start("run", |id| writeln!(io::stdout(), "{id}"));
    }
    if background {
        background::enter()?;
    }
    let new = NewVm { source, options };
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
    mode: Mode,
}

/// How the command is connected to us.
enum Mode {
    /// By its standard streams.
    Foreground,
    /// By a terminal.
    Terminal,
    /// Not at all: the guest keeps the end of its output.
    Background,
}

impl RunPlan {
    async fn run(self, vm: &Vm, signals: &mut Signals) -> anyhow::Result<WorkResult> {
        let started = tokio::select! {
            started = self.services.start(vm) => started?,
            code = signals.next() => return Ok(code.into()),
        };
        let outcome = match self.mode {
            Mode::Foreground => {
                foreground::run(&Target::of_vm(vm.clone()), self.prepared, signals).await?
            }
            Mode::Terminal => shell::run_command(vm, self.prepared.command, signals)
                .await?
                .into(),
            Mode::Background => in_background(vm, self.prepared.command, signals).await?,
        };
        tokio::select! {
            finished = finish(vm, outcome, started, self.pulls) => Ok(finished),
            code = signals.next() => Ok(code.into()),
        }
    }
}

/// Runs the command until it ends, without its streams.
async fn in_background(
    vm: &Vm,
    command: Command,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let process = vm.spawn(command).await?;
    background::detach(vm)?;
    tokio::select! {
        exit = process.wait() => Ok(of_exit(&exit?).into()),
        code = signals.next() => Ok(Outcome::interrupted(code, process.tag())),
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
    // Somebody waits for the end.
    let is_urgent = outcome.interrupted && outcome.result.is_none();
    let services = match is_urgent {
        true => Vec::new(),
        false => started.statuses().await,
    };
    let result = outcome.result.take().map(|mut result| {
        result["sandbox_id"] = vm.id().into();
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
    if !outcome.interrupted {
        started.stop().await;
    }
    let code = match outcome.code {
        code if pulls.run(vm).await => code,
        0 => INCOMPLETE,
        code => code,
    };
    WorkResult { code, result }
}
