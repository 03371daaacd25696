//! Confines itself as it is told, and executes a VMM.
//!
//! It inherits the descriptors of the VMM, and after them its own program, its [`Plan`], the
//! socket on which it reports, and its cgroup if there is one. The number of the first of
//! these is its argument.

mod capabilities;
mod descriptors;
mod executable;
mod file_rules;
mod limits;
mod namespaces;
mod parent;
mod root;
mod stage;
mod sys;
mod syscall_filter;
mod user;

use std::{
    convert::Infallible,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use rustix::process::chdir;
use vmcell_launcher::{Failure, Layer, LayerStatus, Message, Plan};

use self::{
    descriptors::Descriptors,
    stage::{StageExt as _, failure},
};

fn main() -> ExitCode {
    let first = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(Ok(descriptors)) = first.map(Descriptors::take) else {
        eprintln!("vmcell-launcher is started by the library vmcell only");
        return ExitCode::FAILURE;
    };
    match launch(&descriptors) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            descriptors.report(&Message::Failed(failure));
            ExitCode::FAILURE
        }
    }
}

/// Becomes the VMM. Returns if that is another process, or if there is none.
fn launch(descriptors: &Descriptors) -> Result<(), Failure> {
    let plan = descriptors.plan().stage("read the plan")?;
    let mut layers = Vec::new();
    layers.push(match (&plan.cgroup, descriptors.join_cgroup()) {
        (Err(reason), _) => LayerStatus::inactive(Layer::Cgroup, reason),
        (Ok(_), Err(error)) if plan.needs_cgroup => {
            return Err(failure(Some(Layer::Cgroup), "enter the cgroup", error));
        }
        (Ok(_), Err(error)) => LayerStatus::inactive(
            Layer::Cgroup,
            format!("a process of this program may not be moved to another: {error}"),
        ),
        (Ok(detail), Ok(())) => LayerStatus::active(Layer::Cgroup, detail),
    });
    let executable = plan.program.as_deref().map(executable::examine);
    let executable = executable.transpose().stage("read the VMM's program")?;
    if let Some(script) = executable.as_ref().and_then(|found| found.script.as_ref()) {
        return run_script(&plan, descriptors, layers, script);
    }
    if let Some(reason) = &plan.no_namespaces {
        layers.push(LayerStatus::inactive(Layer::Namespaces, reason));
    } else {
        let detail = namespaces::enter().layer(Layer::Namespaces, "enter namespaces")?;
        if let Some(child) = namespaces::fork().layer(Layer::Namespaces, "make a process")? {
            descriptors.report(&Message::Child(child.as_raw_nonzero().get()));
            return Ok(());
        }
        root::set_up(&plan)?;
        layers.push(LayerStatus::active(Layer::Namespaces, detail));
    }
    capabilities::drop_bounding_set().stage("drop capabilities")?;
    layers.push(user::change(&plan).stage("change the user")?);
    layers.push(capabilities::drop_all().stage("drop capabilities")?);
    parent::die_with_it(descriptors).stage("follow the caller's program")?;
    layers.push(limits::apply(&plan, &layers).stage("set limits")?);
    layers.push(file_rules::apply(&plan, executable.as_ref())?);
    layers.push(syscall_filter::apply(&plan)?);
    layers.sort_by_key(|status| Layer::ALL.iter().position(|layer| *layer == status.layer));
    if plan.is_required {
        require(&plan, &layers)?;
    }
    execute(&plan, descriptors, layers).map(|never| match never {})
}

/// Executes a VMM that is a script. It needs a shell and whatever else it calls, so it is not
/// confined.
fn run_script(
    plan: &Plan,
    descriptors: &Descriptors,
    mut layers: Vec<LayerStatus>,
    interpreter: &str,
) -> Result<(), Failure> {
    let reason = format!("the VMM is a script for {interpreter}: name the program itself");
    if plan.is_required {
        return Err(failure(None, "confine the VMM", &reason));
    }
    let others = Layer::ALL
        .into_iter()
        .filter(|layer| *layer != Layer::Cgroup);
    layers.extend(others.map(|layer| LayerStatus::inactive(layer, &reason)));
    parent::die_with_it(descriptors).stage("follow the caller's program")?;
    limits::apply_quotas(plan).stage("set limits")?;
    execute(plan, descriptors, layers).map(|never| match never {})
}

/// Checks that the host's files, network and processes are out of reach.
fn require(plan: &Plan, layers: &[LayerStatus]) -> Result<(), Failure> {
    let find = |layer| layers.iter().find(|status| status.layer == layer);
    let is_active = |layer| find(layer).is_some_and(|status| status.is_active);
    // Landlock does not keep it from sockets that have a path.
    let enough = match plan.uses_sockets {
        true => is_active(Layer::Namespaces),
        false => is_active(Layer::Namespaces) || file_rules::has_scopes(layers),
    };
    if enough {
        return Ok(());
    }
    let reasons: Vec<_> = [Layer::Namespaces, Layer::Landlock]
        .into_iter()
        .filter_map(find)
        .map(|status| format!("{}: {}", status.layer, status.detail))
        .collect();
    Err(failure(None, "confine the VMM", reasons.join("; ")))
}

fn execute(
    plan: &Plan,
    descriptors: &Descriptors,
    layers: Vec<LayerStatus>,
) -> Result<Infallible, Failure> {
    chdir(&*plan.folder).stage("change the folder")?;
    descriptors.report(&Message::Confined(layers));
    let (Some(program), Some((name, arguments))) = (&plan.program, plan.arguments.split_first())
    else {
        std::process::exit(0);
    };
    let error = Command::new(program).arg0(name).args(arguments).exec();
    Err(failure(None, "execute the VMM", error))
}
