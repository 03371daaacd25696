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
    scene::{Builder, MakeProgram, Scene},
    unmet::{Seen, Unmet},
};
use crate::{
    error::Error,
    vm::{Vm, VmBuilder},
};

/// The behaviours, to be looked for in VMs of one kind.
pub struct Suite {
    name: String,
    builder: Builder,
    program: Option<MakeProgram>,
}

/// How long one behaviour may take to be seen, on the slowest machine: four
/// times what a machine takes that emulates VMs and has other work for all its
/// processors.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_secs(240);

/// What a program that stays prints when its VM runs.
pub(super) const RUNS: &str = "vmcell-conformance: runs ";

impl Suite {
    /// A suite with this name over VMs that are described so.
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

    /// A program that starts a VM of the same kind and then calls [`stay`]. The
    /// suite starts it, kills it with SIGKILL, and looks at what is left. It may
    /// be the suite's own program, started with an argument that tells it so.
    ///
    /// Without one, what is left of a dead program counts as skipped.
    #[must_use]
    pub fn program(mut self, program: impl Fn() -> Program + Send + Sync + 'static) -> Self {
        self.program = Some(Arc::new(program));
        self
    }

    /// Looks for every behaviour, one after the other. Where the backend cannot
    /// be used or something that it needs is missing, all of them are skipped
    /// with that reason.
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
            let begun = Instant::now();
            let verdict = match &vm {
                Ok(vm) => self.look(behaviour.look, vm.clone()).await,
                Err(_) => Verdict::Skipped("no VM starts".to_owned()),
            };
            tracing::debug!(suite = self.name, behaviour.name, ?verdict, "looked for");
            rows.push(Row {
                group: behaviour.group,
                behaviour: behaviour.name,
                verdict,
                milliseconds: milliseconds(begun.elapsed()),
            });
        }
        if let (Err(reason), Some(first)) = (starts, rows.first_mut()) {
            first.verdict = Verdict::Failed(reason);
            first.milliseconds = milliseconds(started.elapsed());
        }
        if let Ok(vm) = vm {
            vm.kill().await;
        }
        Report {
            name: self.name.clone(),
            rows,
        }
    }

    async fn look(&self, look: behaviour::Look, vm: Vm) -> Verdict {
        let scene = Scene {
            vm,
            builder: self.builder.clone(),
            program: self.program.clone(),
        };
        let seen: Seen = match timeout(CHECK_TIMEOUT, look(scene)).await {
            Ok(seen) => seen,
            Err(_) => Err(Unmet::failed(format!(
                "it takes longer than {} s",
                CHECK_TIMEOUT.as_secs()
            ))),
        };
        match seen {
            Ok(()) => Verdict::Passed,
            Err(Unmet::Failed(reason)) => Verdict::Failed(reason),
            Err(Unmet::Skipped(reason)) => Verdict::Skipped(reason),
        }
    }
}

/// Tells the [suite](Suite::program) that started this program that the VM runs,
/// and waits to be killed.
///
/// # Cancel safety
/// Cancel safe.
pub async fn stay(vm: &Vm) {
    println!("\n{RUNS}{}", vm.id());
    // Nobody may listen any more; then there is nobody to tell.
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
