use alloc::{format, string::String};

use rustix::{fd::OwnedFd, process::Pid};
use vmcell_wire::{Exit, ExitCause, Failure, FailureKind, Stage, Start, service::Spec};

use super::{Log, log::ReadBudget};
use crate::{
    clock::Moment,
    event::Event,
    ids::{ProcessId, ServiceId},
    probe::ProbeRunner,
    process::{Context, KillReason, Processes, Role, background, output_pipe, raw_errno},
};

/// A process of a service, from its start until it and its descendants have
/// ended.
pub(super) struct Run {
    process: ProcessId,
    pid: Pid,
    leader_was_reaped: bool,
    pub(super) started: Moment,
    /// The agent's end of its output, until its program is executed.
    pipe: Option<OwnedFd>,
    pub(super) ready_since: Option<Moment>,
    /// Its readiness or liveness probe.
    pub(super) probe: Option<ProbeRunner>,
    /// How many attempts of the liveness probe failed in a row.
    pub(super) failures: u32,
    /// The reason of the last failed attempt.
    pub(super) reason: Option<String>,
    /// When its processes are to be killed.
    pub(super) kill_at: Option<Moment>,
    /// When to stop waiting for the end of its output.
    pub(super) output_until: Option<Moment>,
}

impl Run {
    /// Begins to start the program of a service.
    pub(super) fn begin(
        id: ServiceId,
        name: &str,
        spec: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Self, Failure<'static>> {
        let decoded = Spec::from_bytes(spec).map_err(|_| {
            let text = "the spec cannot be read";
            Failure::new(FailureKind::Invalid, Stage::Service, text)
        })?;
        let tag = format!("service:{name}");
        let start = Start {
            tag: &tag,
            ..background(&decoded.start)
        };
        let no_pipe = |errno, text| Failure::from_errno(raw_errno(errno), Stage::Pipes, text);
        let (ours, theirs) =
            output_pipe().map_err(|errno| no_pipe(errno, "the pipes cannot be created"))?;
        let Context {
            processes,
            poller,
            now,
        } = context;
        // Watched before the process exists, so that a failure costs nothing.
        poller
            .watch(&ours, Event::Log(id))
            .map_err(|errno| no_pipe(errno, "the pipes cannot be watched"))?;
        let process = processes.start_for_service(&start, Role::Service, theirs, poller)?;
        let pid = processes.get_mut(process).map(|process| process.pid);
        Ok(Self {
            process,
            // It exists: it was created above.
            pid: pid.unwrap_or(Pid::INIT),
            leader_was_reaped: pid.is_none(),
            started: *now,
            pipe: Some(ours),
            ready_since: None,
            probe: None,
            failures: 0,
            reason: None,
            kill_at: None,
            output_until: None,
        })
    }

    /// Returns whether its program was executed, or why not; `None`: not known
    /// yet.
    pub(super) fn launch_result(
        &self,
        processes: &mut Processes,
    ) -> Option<Result<(), Failure<'static>>> {
        match processes.get_mut(self.process) {
            Some(process) if process.is_starting() => None,
            Some(process) => Some(process.start_failure().map_or(Ok(()), Err)),
            None => Some(Ok(())),
        }
    }

    /// Continues the log with the output of the program.
    pub(super) fn begin_log(&mut self, log: &mut Log) {
        if let Some(pipe) = self.pipe.take() {
            log.begin_run(pipe);
            // It may have printed something already.
            log.on_ready();
        }
    }

    /// Returns whether a process is that of this run or of its probe.
    pub(super) fn uses_process(&self, process: ProcessId) -> bool {
        let probed_by = |probe: &ProbeRunner| probe.runs_as(process);
        self.process == process || self.probe.as_ref().is_some_and(probed_by)
    }

    /// Returns its pid while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        let pid = self.pid.as_raw_nonzero().get().unsigned_abs();
        (!self.leader_was_reaped).then_some(pid)
    }

    /// Returns why its process ended, if it has.
    pub(super) fn cause(&mut self, processes: &mut Processes) -> Option<ExitCause> {
        let cause = match processes.get_mut(self.process) {
            Some(process) if process.start_failure().is_none() => process.termination.cause(),
            _ => Some(ExitCause::Killed),
        };
        self.leader_was_reaped |= cause.is_some();
        cause
    }

    /// Stops it: sends the signal, and kills it after the grace time.
    pub(super) fn stop(&mut self, signal: u8, grace_ms: u32, context: &mut Context<'_>) {
        self.stop_probe(context.processes);
        if self.cause(context.processes).is_none()
            && let Some(process) = context.processes.get_mut(self.process)
        {
            // It fails only if the process has ended, which is noticed later.
            let _ = process.signal(signal);
            self.kill_at = Some(context.now.after_ms(grace_ms.into()));
        }
    }

    /// Returns how much of its log may be read.
    pub(super) fn read_budget(&self) -> ReadBudget {
        match &self.probe {
            Some(probe) if probe.is_behind() => ReadBudget::None,
            Some(probe) if probe.reads_log() => ReadBudget::Single,
            _ => ReadBudget::Full,
        }
    }

    /// Returns whether part of its log is not searched yet.
    pub(super) fn is_behind(&self) -> bool {
        self.probe.as_ref().is_some_and(ProbeRunner::is_behind)
    }

    /// Returns why it is not ready.
    pub(super) fn take_reason(&mut self) -> String {
        let first = || self.probe.as_ref().map_or("", ProbeRunner::pending_reason);
        self.reason.take().unwrap_or_else(|| first().into())
    }

    /// Stops its probe.
    pub(super) fn stop_probe(&mut self, processes: &mut Processes) {
        if let Some(probe) = self.probe.take() {
            probe.stop(processes);
        }
    }

    /// Kills it if the grace time is over.
    pub(super) fn kill_if_late(&mut self, context: &mut Context<'_>) {
        if self.kill_at.is_some_and(|at| at <= context.now) {
            self.kill_at = None;
            context.processes.kill(self.process, KillReason::Host);
        }
    }

    /// Returns its exit status once its whole tree has ended or the time for
    /// that is over.
    pub(super) fn final_exit(&mut self, processes: &mut Processes) -> Option<Option<Exit>> {
        match processes.get_mut(self.process) {
            Some(process) if process.start_failure().is_none() => {
                processes.finalize_exit(self.process).map(Some)
            }
            _ => Some(None),
        }
    }

    /// Releases its process.
    pub(super) fn release(&self, processes: &mut Processes) {
        processes.release(self.process);
    }

    /// Returns when it must be checked next.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        let probe = self.probe.as_ref().and_then(ProbeRunner::next_deadline);
        [probe, self.kill_at].into_iter().flatten().min()
    }
}
