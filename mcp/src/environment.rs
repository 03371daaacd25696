//! The environments that VMs boot, by name.

use std::{path::PathBuf, sync::Arc};

use vmcell::{Command, workspace::NewWorkspace};
use vmcell_rootfs::{
    Error,
    catalog::{Catalog, CatalogEntry},
    oci::Defaults,
};

use crate::{failure::Failure, progress::Progress};

/// The environment that VMs boot, unless the caller says.
pub(crate) const DEFAULT: &str = "base";

/// Returns all environments.
pub(crate) async fn list() -> Result<Vec<CatalogEntry>, Failure> {
    on_thread(|| Catalog::user()?.list()).await
}

/// An environment that a VM can boot.
pub(crate) struct FoundEnvironment {
    pub(crate) image: PathBuf,
    defaults: Defaults,
}

impl FoundEnvironment {
    /// Runs a command as the environment says.
    pub(crate) fn apply_to(&self, mut command: Command) -> Command {
        command = command.envs(self.defaults.variables());
        if let Some(user) = &self.defaults.user {
            command = command.user(user);
        }
        match &self.defaults.working_dir {
            Some(directory) => command.current_dir(directory),
            None => command,
        }
    }

    /// Returns a workspace whose commands have the user and the variables of the environment.
    pub(crate) fn new_workspace(&self, name: &str) -> NewWorkspace {
        let mut new = NewWorkspace::new(&self.image).environment(name);
        for (name, value) in self.defaults.variables() {
            new = new.env(name, value);
        }
        match &self.defaults.user {
            Some(user) => new.user(user),
            None => new,
        }
    }
}

/// Finds an environment. Its image is built if it does not exist. A model names environments and
/// not files.
pub(crate) async fn find(name: &str, progress: Arc<Progress>) -> Result<FoundEnvironment, Failure> {
    let wanted = name.to_owned();
    let building = move || {
        Catalog::user()?.image(&wanted, |step| {
            let percent = step.fraction * 100.0;
            progress.set(format!(
                "building the environment: {}, {percent:.0} %",
                step.stage
            ));
        })
    };
    if let Some((image, defaults)) = on_thread(building).await? {
        return Ok(FoundEnvironment { image, defaults });
    }
    let message = format!("there is no environment {name:?}");
    let names: Vec<_> = list().await?.into_iter().map(|entry| entry.name).collect();
    let remedy = format!("choose one of {}", names.join(", "));
    Err(Failure::new("invalid", message).with_remedy(remedy))
}

/// Uses the catalog, which blocks.
async fn on_thread<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(run).await;
    let done = done.map_err(|error| Failure::internal(&error))?;
    done.map_err(|error| Failure::new("environment", error.to_string()))
}
