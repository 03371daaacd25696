//! The environments that VMs boot, by name.

use std::{path::PathBuf, sync::Arc};

use vmcell_rootfs::{Cache, Environment};

use crate::{failure::Failure, progress::Progress};

/// The environment that VMs boot, unless the caller says.
pub(crate) const DEFAULT: &str = "base";

/// Returns whether the image of an environment was built already.
pub(crate) fn is_installed(environment: Environment) -> bool {
    let cached = Cache::user().and_then(|cache| environment.cached(&cache));
    matches!(cached, Ok(Some(_)))
}

/// Returns the image of an environment, which is built if it does not exist. A model names
/// environments and not files.
pub(crate) async fn image(name: &str, progress: Arc<Progress>) -> Result<PathBuf, Failure> {
    let Some(environment) = Environment::from_name(name) else {
        let message = format!("there is no environment {name:?}");
        let names = Environment::ALL.map(Environment::name).join(", ");
        return Err(Failure::new("invalid", message).with_remedy(format!("choose one of {names}")));
    };
    let building = move || {
        environment.build(|step| {
            let percent = step.fraction * 100.0;
            progress.set(format!(
                "building the environment: {}, {percent:.0} %",
                step.stage
            ));
        })
    };
    let built = tokio::task::spawn_blocking(building).await;
    let built = built.map_err(|error| Failure::internal(&error))?;
    let image = built.map_err(|error| Failure::new("environment", error.to_string()))?;
    Ok(image.path)
}
