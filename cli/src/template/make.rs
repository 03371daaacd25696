//! `vmcell template make`: prepares a VM and saves it.

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    os::unix::ffi::OsStrExt,
    pin::pin,
    time::Instant,
};

use anyhow::{anyhow, ensure};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use vmcell::{
    Command, Error, Template, Vm,
    template::{TemplateBuilder, TemplateInfo},
};
use vmcell_cli::{
    options::size::human_readable,
    show::{Spinner, name},
    signals::Signals,
};

use super::{
    arguments::MakeArguments,
    preparation::{OutputTarget, Preparation, PreparationCommand, PreparationFailure},
};
use crate::{
    digest::PartsDigest,
    environment,
    failure::{print_json, report, report_error},
    files::{Pushes, WORKSPACE},
    run_services::RunServices,
    runtime::block_on,
    service::PlannedService,
    start_options::StartSettings,
};

/// How the names of templates begin that `--warm` makes. Old ones are removed.
const AUTOMATIC: &str = "auto-";

pub(super) fn make(arguments: MakeArguments) -> anyhow::Result<u8> {
    let MakeArguments {
        name,
        environment,
        size,
        machine,
        network,
        push,
        services,
        mut start,
        timeout_seconds,
        json,
        command,
    } = arguments;
    check_name(&name)?;
    // Fails if it is no name, before anything takes time.
    block_on(async { Ok(Template::find(&name).await?) })?;
    let pushes = Pushes::check(push)?;
    if !pushes.is_empty() {
        start.set_default_directory(WORKSPACE);
    }
    let start = start.load()?;
    let key = preparation_key(&pushes, &services.0, &start, &command)?;
    let services = RunServices::new(services.0, &start, Vec::new())?;
    let command = (!command.is_empty()).then(|| {
        let command = start.apply_to(Command::from_argv(command));
        PreparationCommand {
            command: match timeout_seconds {
                Some(limit) => command.timeout(limit),
                None => command,
            },
            timeout: timeout_seconds,
            outputs: match json {
                true => OutputTarget::Stderr,
                false => OutputTarget::Both,
            },
        }
    });
    let preparation = Preparation {
        pushes,
        services,
        command,
    };
    let image = environment::image(&environment)?;
    let vm = Vm::builder()
        .image(image)
        .vcpus(size.vcpu_count)
        .memory_mib(size.mem_mib);
    let vm = match size.disk_mib {
        Some(mib) => vm.disk_mib(mib),
        None => vm,
    };
    let vm = match network.policy(false)? {
        Some(policy) => vm.network(policy),
        None => vm,
    };
    let job = MakeJob {
        builder: Template::builder(machine.apply(vm)).name(name),
        key,
        preparation,
    };
    let began = Instant::now();
    let made = block_on(async move {
        let mut signals = Signals::all()?;
        tokio::select! {
            made = job.run() => made,
            code = signals.next() => Ok(Made::Interrupted(code)),
        }
    })?;
    let (template, is_new) = match made {
        Made::Interrupted(code) => return Ok(code),
        Made::CommandFailed { code, message } => {
            report_error(&anyhow!(message), json);
            return Ok(code);
        }
        Made::Template { template, is_new } => (template, is_new),
    };
    let seconds = began.elapsed().as_secs_f64();
    if json {
        let mut object = json!({
            "name": template.name,
            "bytes": template.bytes,
            "made": is_new,
            "seconds": seconds,
        });
        name::insert(&mut object, "path", &template.path);
        print_json(&object);
    } else if io::stderr().is_terminal() {
        let (name, size) = (&template.name, human_readable(template.bytes));
        report(&match is_new {
            true => format!("made the template {name}: {size}, in {seconds:.1} s"),
            false => format!("the template {name} is there already: {size}"),
        });
    }
    Ok(0)
}

/// Fails if a name is for other templates than those of users.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    ensure!(
        !name.starts_with(AUTOMATIC),
        "{name:?} cannot be the name of a template: `{AUTOMATIC}` is for those that --warm makes"
    );
    Ok(())
}

/// A template that is to be there.
struct MakeJob {
    builder: TemplateBuilder,
    key: String,
    preparation: Preparation,
}

/// What came of it.
enum Made {
    Template {
        template: TemplateInfo,
        /// Whether it was not there before.
        is_new: bool,
    },
    /// The command in the VM failed, and there is no template.
    CommandFailed { code: u8, message: String },
    /// We received a signal.
    Interrupted(u8),
}

impl MakeJob {
    async fn run(self) -> anyhow::Result<Made> {
        // The library runs the step if there is no such template yet. The work is
        // done here, where its failure is known as more than an error of the
        // library.
        let (requests, mut incoming) = mpsc::channel::<(Vm, oneshot::Sender<()>)>(1);
        let step = move |vm: Vm| {
            let requests = requests.clone();
            async move {
                let (done, prepared) = oneshot::channel();
                let _ = requests.send((vm, done)).await;
                let not_prepared = |_| Error::Invalid("the VM was not prepared".to_owned());
                prepared.await.map_err(not_prepared)
            }
        };
        let mut making = pin!(self.builder.prepare(self.key, step).get());
        let mut is_new = false;
        let mut spinner = Spinner::show("booting the VM");
        let template = loop {
            let (vm, done) = tokio::select! {
                made = &mut making => break made?,
                Some(request) = incoming.recv() => request,
            };
            is_new = true;
            // The preparation prints.
            drop(spinner);
            if let Err(failure) = self.preparation.run(&vm).await {
                // We own it, so this does not fail.
                let _ = vm.kill().await;
                return match failure {
                    PreparationFailure::Command { code, message } => {
                        Ok(Made::CommandFailed { code, message })
                    }
                    PreparationFailure::Other(error) => Err(error),
                };
            }
            spinner = Spinner::show("saving the template");
            // Fails only if the library has given up, and reports why.
            let _ = done.send(());
        };
        drop(spinner);
        let found = Template::find(template.name()).await?;
        Ok(Made::Template {
            template: found.ok_or(Error::Busy("another program has removed the template"))?,
            is_new,
        })
    }
}

/// Returns a digest of all that the preparation depends on.
fn preparation_key(
    pushes: &Pushes,
    services: &[PlannedService],
    start: &StartSettings,
    command: &[OsString],
) -> Result<String, Error> {
    let mut digest = PartsDigest::default();
    pushes.add_to(&mut digest)?;
    for service in services {
        // All settings, in the words of the program: they are compared only with
        // those of the same version.
        digest.add("service", format!("{service:?}"));
    }
    start.add_to(&mut digest);
    for argument in command {
        digest.add("argument", argument.as_bytes());
    }
    Ok(digest.finish())
}
