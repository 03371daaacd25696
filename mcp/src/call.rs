use std::sync::Arc;

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use vmcell::{Vm, workspace::Workspace};

use crate::{failure::Failure, shared::Shared};

/// One call of a tool: what the tool works with, and how it reports.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    peer: Peer<RoleServer>,
    /// Clients that want to be told about the progress send one.
    token: Option<ProgressToken>,
}

impl Call {
    pub(crate) fn new(
        shared: Arc<Shared>,
        peer: Peer<RoleServer>,
        token: Option<ProgressToken>,
    ) -> Self {
        Self {
            shared,
            peer,
            token,
        }
    }

    /// Finds a workspace by its id or name.
    pub(crate) async fn workspace(&self, id: &str) -> Result<Workspace, Failure> {
        self.shared.workspace(id).await
    }

    /// Finds the VM of a workspace that runs.
    pub(crate) async fn running(&self, id: &str) -> Result<(Workspace, Vm), Failure> {
        let workspace = self.workspace(id).await?;
        let vm = workspace.vm().await?;
        Ok((workspace, vm))
    }

    /// Returns whether somebody wants to be told about the progress.
    pub(crate) fn is_watched(&self) -> bool {
        self.token.is_some()
    }

    /// Tells the client how far the work is.
    pub(crate) async fn report(&self, progress: f64, total: Option<f64>, message: String) {
        let Some(token) = &self.token else {
            return;
        };
        let mut report = ProgressNotificationParam::new(token.clone(), progress);
        report.total = total;
        report.message = Some(message);
        // Who is gone does not want to know.
        let _ = self.peer.notify_progress(report).await;
    }
}
