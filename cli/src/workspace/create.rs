//! `vmcell workspace create`: creates a workspace and starts it.

use std::time::Duration;

use vmcell::workspace::NewWorkspace;
use vmcell_cli::{options::size::human_readable, show::Spinner};

use super::{WORKSPACES, arguments::CreateArguments, open};
use crate::runtime::block_on;

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
        WORKSPACES.print_new(&workspace, id_only, json).await
    })
}

fn new_workspace(arguments: CreateArguments) -> anyhow::Result<NewWorkspace> {
    let new = arguments
        .options
        .prepare(arguments.id, arguments.ttl_seconds)?;
    let idle = Duration::from_secs(arguments.idle_seconds);
    let mut new = new.warm(arguments.warm).pause_when_idle(idle);
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
    for variable in arguments.variables {
        new = new.env(variable.name, variable.value);
    }
    let secrets = arguments.secrets.load()?;
    Ok(secrets.iter().fold(new, NewWorkspace::secret))
}
