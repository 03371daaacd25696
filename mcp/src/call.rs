use std::sync::Arc;

use vmcell::{Error, ExecStream, Output, Vm, workspace::Workspace};

use crate::{
    failure::Failure,
    output_log::{LogTarget, OutputLog},
    progress::Progress,
    shared::Shared,
};

/// One call of a tool: what the tool works with, and how it reports.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) progress: Arc<Progress>,
    /// Where output goes while it is printed, if the client wants that.
    log: Option<LogTarget>,
}

impl Call {
    pub(crate) fn new(shared: Arc<Shared>, log: Option<LogTarget>) -> Self {
        Self {
            shared,
            progress: Arc::new(Progress::new()),
            log,
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

    /// Collects what a command prints, and logs it meanwhile.
    pub(crate) async fn output(&self, stream: ExecStream) -> Result<Output, Error> {
        let Some(target) = &self.log else {
            return stream.wait_with_output().await;
        };
        let log = OutputLog::default();
        let collecting = async {
            let output = stream.inspect_output(|kind, bytes| log.add(kind, bytes));
            let output = output.await;
            log.end();
            output
        };
        let (output, ()) = tokio::join!(collecting, log.send(target));
        output
    }
}
