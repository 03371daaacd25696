//! Deletes the kept VMs whose time is over, while another command runs.

use std::{
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::time::timeout;
use vmcell::{Error, workspace::Workspaces};

use crate::{runtime::block_on, vm};

/// How long a command waits at its end for what is being deleted.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Starts to delete them. Errors are logged: the command has nothing to do with them.
pub(crate) fn reap_in_background() -> Option<JoinHandle<()>> {
    let reap = || {
        let reaped = block_on(async { Ok(timeout(MAX_TIME, reap()).await??) });
        if let Err(error) = reaped {
            tracing::warn!(%error, "cannot delete kept VMs whose time is over");
        }
    };
    thread::Builder::new().spawn(reap).ok()
}

async fn reap() -> Result<(), Error> {
    let apart = Workspaces::open_existing_apart(vm::FOLDER)?;
    for workspaces in Workspaces::open_existing()?.into_iter().chain(apart) {
        workspaces.reap_expired().await?;
    }
    Ok(())
}
