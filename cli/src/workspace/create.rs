//! `vmcell workspace create`: creates a workspace and starts it.

use std::{
    io::{self, Write},
    time::Duration,
};

use vmcell::workspace::NewWorkspace;
use vmcell_cli::{options::size::human_readable, show::Spinner};

use super::{arguments::CreateArguments, info, open};
use crate::{environment, runtime::block_on};

pub(super) fn create(arguments: CreateArguments, json: bool) -> anyhow::Result<u8> {
    let id_only = arguments.id_only;
    let new = new_workspace(arguments)?;
    block_on(async move {
        let workspaces = open()?;
        let spinner = Spinner::show("creating the workspace");
        let progress = spinner.messages();
        let creating = workspaces.create_with_progress(new, move |seed| {
            let size = human_readable(seed.bytes);
            progress.set(format!(
                "copying the seed: {} entries, {size}",
                seed.entries
            ));
        });
        let workspace = creating.await?;
        drop(spinner);
        match id_only {
            true => writeln!(io::stdout(), "{}", workspace.id())?,
            false => info::print(&workspace.info().await?, json)?,
        }
        Ok(0)
    })
}

/// Builds the image of the environment, if it does not exist.
fn new_workspace(arguments: CreateArguments) -> anyhow::Result<NewWorkspace> {
    let variables = arguments.network.variables();
    let network = arguments.network.policy(false)?;
    let image = environment::image(&arguments.environment)?;
    let mut new = NewWorkspace::new(image)
        .environment(arguments.environment.to_string_lossy())
        .vcpus(arguments.vcpu_count)
        .memory_mib(arguments.mem_mib)
        .warm(arguments.warm)
        .pause_when_idle(Duration::from_secs(arguments.idle_seconds))
        .lifetime(Duration::from_secs(arguments.ttl_seconds));
    if let Some(mib) = arguments.disk_mib {
        new = new.disk_mib(mib);
    }
    if let Some(id) = arguments.id {
        new = new.id(id);
    }
    if let Some(name) = arguments.name {
        new = new.name(name);
    }
    for label in arguments.labels {
        new = new.label(label.key, label.value);
    }
    if let Some(path) = arguments.seed_path {
        new = new.seed(path);
    }
    if let Some(user) = arguments.user {
        new = new.user(user);
    }
    for (name, value) in variables {
        new = new.env(*name, *value);
    }
    for variable in arguments.variables {
        new = new.env(variable.name, variable.value);
    }
    if let Some(policy) = network {
        new = new.network(policy);
    }
    Ok(new)
}
