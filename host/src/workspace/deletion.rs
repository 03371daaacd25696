use tokio::task::JoinSet;

use super::{Workspace, WorkspaceError, Workspaces};
use crate::{error::Error, on_thread::on_thread};

/// What [`Workspaces::delete_all`] has done.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DeletedWorkspaces {
    /// The ids of those that are gone.
    pub deleted: Vec<String>,
    /// Those that are still there.
    pub failed: Vec<FailedDeletion>,
}

/// A workspace that could not be deleted.
#[derive(Debug)]
#[non_exhaustive]
pub struct FailedDeletion {
    /// Its id.
    pub id: String,
    /// Why it could not be deleted.
    pub error: Error,
}

impl Workspaces {
    /// Deletes all workspaces, running or not, with their disks, their snapshots and their
    /// histories. Those that are being created are waited for. One that cannot be deleted
    /// does not keep the others.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell::Error> {
    /// let outcome = vmcell::workspace::Workspaces::open()?.delete_all().await?;
    /// for failed in outcome.failed {
    ///     eprintln!("{} is still there: {}", failed.id, failed.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Host`] if nothing could be begun.
    ///
    /// # Cancel safety
    /// If the future is dropped, only some may be deleted.
    pub async fn delete_all(&self) -> Result<DeletedWorkspaces, Error> {
        let this = self.clone();
        let looking = on_thread("look for the workspaces", move || {
            let _lock = this.lock()?;
            this.sweep();
            Ok(this.ids().collect::<Vec<_>>())
        });
        let mut deletions = JoinSet::new();
        for id in looking.await? {
            let workspace = Workspace::new(self.clone(), id.clone());
            deletions.spawn(async move { (id, workspace.delete().await) });
        }
        let mut outcome = DeletedWorkspaces::default();
        while let Some(ended) = deletions.join_next().await {
            // Fails only if it panics.
            let Ok((id, deleted)) = ended else {
                continue;
            };
            match deleted {
                Ok(()) => outcome.deleted.push(id),
                // Somebody else has deleted it, or it could not be created.
                Err(Error::Workspace(WorkspaceError::NotFound { .. })) => {}
                Err(error) => outcome.failed.push(FailedDeletion { id, error }),
            }
        }
        outcome.deleted.sort();
        outcome.failed.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(outcome)
    }
}
