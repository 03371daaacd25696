use std::{
    fmt, future,
    io::Write as _,
    process::Command as Program,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::{
    Report, Row, Verdict, behaviour,
    check::{CheckError, CheckResult},
    context::{CheckContext, ProgramFactory, VmBuilderFactory},
};
use crate::{
    error::Error,
    vm::{Vm, VmBuilder},
};

/// Checks all behaviours in VMs of one kind.
pub struct Suite {
    name: String,
    builder: VmBuilderFactory,
    program: Option<ProgramFactory>,
}

/// How long the check of one behaviour may take, on the slowest machine.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(240);

/// What a [crash program](Suite::crash_program) prints when its VM runs, before
/// the id.
pub(super) const RUNNING_PREFIX: &str = "vmcell-conformance: runs ";

impl Suite {
    /// Creates a suite with this name. `builder` describes its VMs.
    pub fn new(
        name: impl Into<String>,
        builder: impl Fn() -> VmBuilder + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            builder: Arc::new(builder),
            program: None,
        }
    }

    /// Sets a program that starts a VM of the same kind and then calls
    /// [`wait_to_be_killed`]. The suite starts it, kills it with SIGKILL, and
    /// checks what is left. It may be the suite's own program, started with a
    /// special argument.
    ///
    /// Without one, that check is skipped.
    #[must_use]
    pub fn crash_program(mut self, program: impl Fn() -> Program + Send + Sync + 'static) -> Self {
        self.program = Some(Arc::new(program));
        self
    }

    /// Checks every behaviour, one after the other. If the backend cannot be
    /// used or something that it needs is missing, all checks are skipped with
    /// that reason.
    ///
    /// # Cancel safety
    /// If the future is dropped, all VMs of the suite end.
    pub async fn run(&self) -> Report {
        let mut rows = Vec::new();
        let started = Instant::now();
        let vm = (self.builder)().start().await;
        if let Err(error @ (Error::BackendUnavailable { .. } | Error::Missing { .. })) = &vm {
            return Report::skipped(&self.name, error.to_string());
        }
        let starts = vm.as_ref().map(|_| ()).map_err(ToString::to_string);
        for behaviour in behaviour::all() {
            let started = Instant::now();
            let verdict = match &vm {
                Ok(vm) => self.check(behaviour.check, vm.clone()).await,
                Err(_) => Verdict::Skipped("no VM starts".to_owned()),
            };
            tracing::debug!(suite = self.name, behaviour.name, ?verdict, "checked");
            rows.push(Row {
                group: behaviour.group,
                behaviour: behaviour.name,
                verdict,
                milliseconds: milliseconds(started.elapsed()),
            });
        }
        if let (Err(reason), Some(first)) = (starts, rows.first_mut()) {
            first.verdict = Verdict::Failed(reason);
            first.milliseconds = milliseconds(started.elapsed());
        }
        if let Ok(vm) = vm {
            // We own it, so this does not fail.
            let _ = vm.kill().await;
        }
        Report {
            name: self.name.clone(),
            rows,
        }
    }

    async fn check(&self, check: behaviour::Check, vm: Vm) -> Verdict {
        let context = CheckContext {
            vm,
            builder: self.builder.clone(),
            program: self.program.clone(),
        };
        let result: CheckResult = match timeout(CHECK_TIMEOUT, check(context)).await {
            Ok(result) => result,
            Err(_) => Err(CheckError::failed(format!(
                "it takes longer than {} s",
                CHECK_TIMEOUT.as_secs()
            ))),
        };
        match result {
            Ok(()) => Verdict::Passed,
            Err(CheckError::Failed(reason)) => Verdict::Failed(reason),
            Err(CheckError::Skipped(reason)) => Verdict::Skipped(reason),
        }
    }
}

/// Reports to the [suite](Suite::crash_program) that started this program that
/// the VM runs, and waits to be killed.
///
/// # Cancel safety
/// Cancel safe.
pub async fn wait_to_be_killed(vm: &Vm) {
    println!("\n{RUNNING_PREFIX}{}", vm.id());
    // Fails if the suite has gone; it does not matter then.
    let _ = std::io::stdout().flush();
    future::pending().await
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
