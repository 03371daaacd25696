//! What is done in the VM of a template before it is saved.

use std::time::Duration;

use tokio::time::timeout;
use vmcell::{Cause, Command, Vm};

use crate::{
    exit_code::{BROKEN_PIPE, TIMED_OUT, TOOL_FAILED, of_cause},
    failure::report,
    files::Pushes,
    output::Outputs,
    run_services::RunServices,
    stream::{self, CopyEnd},
};

/// How long after its timeout the command may still report its end.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);

/// What is done in the VM, in this order.
#[derive(Clone)]
pub(super) struct Preparation {
    pub(super) pushes: Pushes,
    pub(super) services: RunServices,
    pub(super) command: Option<PreparationCommand>,
}

/// The command that prepares the VM.
#[derive(Clone)]
pub(super) struct PreparationCommand {
    pub(super) command: Command,
    pub(super) timeout: Option<Duration>,
    pub(super) outputs: OutputTarget,
}

/// Where the output of the command goes.
#[derive(Clone, Copy)]
pub(super) enum OutputTarget {
    /// To our outputs.
    Both,
    /// To our standard error. Standard output is for JSON.
    Stderr,
}

/// Why a VM could not be prepared.
pub(super) enum PreparationFailure {
    /// The command failed.
    Command {
        code: u8,
        message: String,
    },
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for PreparationFailure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Preparation {
    /// Prepares a VM. The services go on when it returns.
    pub(super) async fn run(&self, vm: &Vm) -> Result<(), PreparationFailure> {
        vm.warnings().iter().for_each(|warning| report(warning));
        self.pushes.run(vm).await?;
        self.services.clone().start(vm).await?;
        match &self.command {
            Some(command) => command.run(vm).await,
            None => Ok(()),
        }
    }
}

impl PreparationCommand {
    async fn run(&self, vm: &Vm) -> Result<(), PreparationFailure> {
        let events = vm.exec_stream(self.command.clone())?;
        let outputs = match self.outputs {
            OutputTarget::Both => Outputs::for_command(),
            OutputTarget::Stderr => Outputs::for_command_on_stderr(),
        };
        let copying = stream::copy(events, outputs, None);
        let end = match self.timeout {
            None => copying.await?,
            Some(limit) => match timeout(limit.saturating_add(TIMEOUT_GRACE), copying).await {
                Ok(end) => end?,
                Err(_) => return Err(timed_out()),
            },
        };
        let failed = |code, what: &str| PreparationFailure::Command {
            code,
            message: format!("{what}: no template was made"),
        };
        Err(match end {
            CopyEnd::Exited(exit) => match exit.cause {
                Cause::Code(0) => return Ok(()),
                Cause::Timeout => timed_out(),
                cause => failed(of_cause(cause), &format!("the command failed ({cause})")),
            },
            CopyEnd::ReaderGone => failed(BROKEN_PIPE, "nobody reads the command's output"),
            CopyEnd::OutputLimit { .. } => failed(TOOL_FAILED, "the command printed too much"),
        })
    }
}

fn timed_out() -> PreparationFailure {
    PreparationFailure::Command {
        code: TIMED_OUT,
        message: "the command timed out: no template was made".to_owned(),
    }
}
