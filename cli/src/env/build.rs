//! `vmcell env build`: makes an environment from a Dockerfile.

use std::collections::BTreeMap;

use anyhow::Context as _;
use vmcell::ExecEvent;
use vmcell_cli::signals::Signals;
use vmcell_dockerfile::{BaseImage, Build, BuildEvent, Plan};
use vmcell_rootfs::{catalog::Catalog, registry::Reference};
use vmcell_tree::printable_name;

use super::{arguments::BuildArguments, info};
use crate::{environment, output::Outputs};

pub(super) async fn build(arguments: Box<BuildArguments>) -> anyhow::Result<u8> {
    let catalog = Catalog::user()?;
    let name = arguments.name.clone();
    let json = arguments.json;
    let plan = plan(*arguments)?;
    let images = find_images(&plan, &catalog)?;
    let mut signals = Signals::all()?;
    let outputs = Outputs::for_command_on_stderr();
    let building = plan.run(&catalog, &name, &images, async |event| {
        show(event, &outputs).await;
    });
    let entry = tokio::select! {
        entry = building => entry,
        code = signals.next() => return Ok(code),
    };
    outputs.finish().await?;
    info::print_new(&entry?, json).await
}

fn plan(arguments: BuildArguments) -> anyhow::Result<Plan> {
    let file = arguments.file;
    let mut build = Build::new(&file).no_cache(arguments.no_cache);
    if let Some(context) = arguments.context {
        build = build.context(context);
    }
    for argument in arguments.build_arg {
        build = build.argument(argument.name, argument.value);
    }
    if let Some(target) = arguments.target {
        build = build.target(target);
    }
    let size = arguments.size;
    if let Some(mib) = size.disk_mib {
        build = build.disk_mib(mib);
    }
    let network = arguments.network.policy(false)?;
    let build = build.vm(move |vm| {
        let vm = vm.vcpus(size.vcpu_count).memory_mib(size.mem_mib);
        match &network {
            Some(policy) => vm.network(policy.clone()),
            None => vm,
        }
    });
    build.plan().with_context(|| file.display().to_string())
}

/// Finds the images that a build begins with: environments, or images of registries.
fn find_images(plan: &Plan, catalog: &Catalog) -> anyhow::Result<BTreeMap<String, BaseImage>> {
    let mut images = BTreeMap::new();
    for name in plan.images() {
        let is_known = catalog.find(name)?.is_some();
        let reference = (!is_known)
            .then(|| name.parse::<Reference>().ok())
            .flatten();
        let full_name = reference.map_or_else(|| name.to_owned(), |found| found.to_string());
        let found = environment::find(full_name.as_ref());
        let found = found.with_context(|| format!("FROM {name}"))?;
        let image = BaseImage {
            path: found.image,
            defaults: found.defaults,
        };
        images.insert(name.to_owned(), image);
    }
    Ok(images)
}

/// Shows what happens, all on standard error: the result is the name. If nobody reads it, the
/// build goes on.
async fn show(event: BuildEvent<'_>, outputs: &Outputs) {
    match event {
        BuildEvent::Step {
            number,
            count,
            text,
            cached,
            ..
        } => {
            let cached = if cached { " (cached)" } else { "" };
            let text = printable_name(text.as_bytes());
            outputs
                .note(format!("[{number}/{count}] {text}{cached}\n"))
                .await;
        }
        BuildEvent::Stdout(bytes) => {
            outputs.write(ExecEvent::Stdout(bytes)).await;
        }
        BuildEvent::Stderr(bytes) => {
            outputs.write(ExecEvent::Stderr(bytes)).await;
        }
        _ => {}
    }
}
