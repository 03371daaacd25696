//! The environments that VMs boot, by name.

use std::{path::PathBuf, sync::Arc};

use vmcell_rootfs::{
    Error,
    catalog::{Catalog, CatalogEntry},
};

use crate::{failure::Failure, progress::Progress};

/// The environment that VMs boot, unless the caller says.
pub(crate) const DEFAULT: &str = "base";

/// Returns all environments.
pub(crate) async fn list() -> Result<Vec<CatalogEntry>, Failure> {
    on_thread(|| Catalog::user()?.list()).await
}

/// Returns the image of an environment, which is built if it does not exist. A model names
/// environments and not files.
pub(crate) async fn image(name: &str, progress: Arc<Progress>) -> Result<PathBuf, Failure> {
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
    if let Some((image, _)) = on_thread(building).await? {
        return Ok(image);
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
