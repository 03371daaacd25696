//! The state machine of a service: phase changes that no request makes.

use alloc::string::String;

use vmcell_wire::{Exit, ExitCause};

use super::{
    Phase, Run, Service, Services,
    log::ReadBudget,
    needs::Needs,
    phase::{AfterExit, FailureReason},
    restart::{after_exit, after_probe},
    settings::decode,
};
use crate::{
    clock::Moment,
    event::Poller,
    ids::ServiceId,
    probe::{ProbeKind, ProbeResult, ProbeRunner},
    process::{Context, Processes, TREE_GRACE_MS},
};

impl Services {
    /// Advances every service that has changed.
    pub(crate) fn supervise(&mut self, processes: &mut Processes, poller: &Poller) {
        while let Some(process) = processes.next_supervised() {
            self.process_changed(process);
        }
        self.begin_turn();
        while let Some(id) = self.next_changed() {
            self.advance(id, processes, poller);
        }
    }

    fn advance(&mut self, id: ServiceId, processes: &mut Processes, poller: &Poller) {
        self.read_log(id);
        loop {
            let needs = self.needs_of(id);
            let Some(service) = self.get_mut(id) else {
                return;
            };
            let mut context = Context {
                processes,
                poller,
                now: Moment::now(),
            };
            if !service.advance(needs, &mut context) {
                break;
            }
            self.phase_changed(id);
        }
        self.end_turn(id);
    }
}

impl Service {
    /// Changes to the next phase, if possible. Returns whether it did.
    fn advance(&mut self, needs: Needs, context: &mut Context<'_>) -> bool {
        match &self.phase {
            Phase::Waiting(waiting) => match needs {
                Needs::Missing(need) if need == *waiting => false,
                Needs::Missing(need) => self.enter(Phase::Waiting(need)),
                Needs::Failed(need) => {
                    self.enter(Phase::Failed(FailureReason::DependencyFailed(need)))
                }
                Needs::Met => self.begin_run(context),
            },
            Phase::Launching => self.check_launch(context),
            Phase::Starting | Phase::Up => self.check_run(context),
            Phase::Stopping(_) => self.check_stopping(context),
            Phase::Pausing(until) if *until <= context.now => {
                self.restarts = self.restarts.saturating_add(1);
                self.begin_run(context)
            }
            Phase::Pausing(_) | Phase::Stopped | Phase::Failed(_) => false,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) -> bool {
        self.phase = phase;
        self.since = Moment::now();
        if self.is_final() {
            self.log.shrink();
        }
        true
    }

    /// Begins a requested start, which resets its history. Until its needs are
    /// checked it waits for them.
    pub(super) fn begin_start(&mut self) -> bool {
        self.starts = self.starts.saturating_add(1);
        self.restarts = 0;
        self.was_ready = false;
        self.backoff = Default::default();
        self.enter(Phase::Waiting(String::new()))
    }

    fn begin_run(&mut self, context: &mut Context<'_>) -> bool {
        match Run::begin(self.id, &self.name, &self.spec, context) {
            Ok(run) => self.enter_launching(run),
            Err(failure) => self.enter(Phase::Failed(FailureReason::NotStarted(failure))),
        }
    }

    /// Enters `Launching` with a run whose program is not executed yet.
    pub(super) fn enter_launching(&mut self, run: Run) -> bool {
        self.run = Some(run);
        self.enter(Phase::Launching)
    }

    /// Checks whether the program was executed.
    fn check_launch(&mut self, context: &mut Context<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return self.enter(Phase::Failed(FailureReason::Exited));
        };
        match run.launch_result(context.processes) {
            None => self.check_ready_timeout(context),
            Some(Ok(())) => self.on_executed(context.now),
            Some(Err(failure)) => {
                run.release(context.processes);
                self.run = None;
                self.launch_failed(failure)
            }
        }
    }

    /// Handles the execution of the program.
    fn on_executed(&mut self, now: Moment) -> bool {
        self.previous = None;
        self.begin_log();
        if let Ok(spec) = decode(&self.spec) {
            // Without memory for another size the log keeps the one that it
            // has.
            let _ = self.log.set_kept_size(spec.start.keep);
        }
        if self.settings.ready_ms.is_none() {
            return self.enter_up(now);
        }
        if let Some(run) = &mut self.run {
            let log_from = self.log.run_start();
            run.probe = ProbeRunner::new(&self.spec, ProbeKind::Readiness, log_from, now);
        }
        self.enter(Phase::Starting)
    }

    /// Continues the log with the output of the run.
    fn begin_log(&mut self) {
        if let Some(run) = &mut self.run {
            run.begin_log(&mut self.log);
        }
    }

    /// Enters `Up` and starts the liveness probe.
    fn enter_up(&mut self, now: Moment) -> bool {
        self.was_ready = true;
        let log_from = self.log.run_start();
        if let Some(run) = &mut self.run {
            run.ready_since = Some(now);
            run.probe = match self.settings.failures {
                Some(_) => ProbeRunner::new(&self.spec, ProbeKind::Liveness, log_from, now),
                None => None,
            };
        }
        self.enter(Phase::Up)
    }

    /// Checks the run: its probe, its end, its time to become ready.
    fn check_run(&mut self, context: &mut Context<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return self.enter(Phase::Failed(FailureReason::Exited));
        };
        // A process that has ended may have reported before that it is ready.
        let cause = run.cause(context.processes);
        if cause.is_some() {
            self.log.on_ready();
            self.log.read(run.read_budget());
        }
        if self.apply_probe_results(cause.is_some(), context) {
            return true;
        }
        if cause.is_some() && self.has_unsearched(context.now) {
            return false;
        }
        if let Some(cause) = cause {
            return self.on_process_ended(cause, context);
        }
        self.check_ready_timeout(context)
    }

    /// Stops a run that did not become ready in time.
    fn check_ready_timeout(&mut self, context: &mut Context<'_>) -> bool {
        if (self.ready_deadline()).is_some_and(|deadline| deadline <= context.now) {
            let reason = self.run.as_mut().map(Run::take_reason);
            let reason = FailureReason::NotReady(reason.unwrap_or_default());
            return self.stop_after_probe(reason, context);
        }
        false
    }

    /// Returns whether the output of an ended run is not completely searched by
    /// the log probe: the line that makes it ready may follow.
    fn has_unsearched(&mut self, now: Moment) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        let output_until = *run.output_until.get_or_insert(now.after_ms(TREE_GRACE_MS));
        let more = run.is_behind() || self.log.has_more();
        run.read_budget() != ReadBudget::Full && more && now < output_until
    }

    /// Applies the results of its probe. Returns whether the phase changed.
    fn apply_probe_results(&mut self, has_ended: bool, context: &mut Context<'_>) -> bool {
        let id = self.id;
        loop {
            let Some(run) = &mut self.run else {
                return false;
            };
            let ring = self.log.ring();
            let result = run
                .probe
                .as_mut()
                .and_then(|probe| probe.poll(id, ring, has_ended, context));
            match result {
                None => return false,
                Some(ProbeResult::Success) if self.phase == Phase::Starting => {
                    run.stop_probe(context.processes);
                    return self.enter_up(context.now);
                }
                Some(ProbeResult::Success) => run.failures = 0,
                Some(ProbeResult::Failure(reason)) if self.phase == Phase::Starting => {
                    run.reason = Some(reason);
                }
                Some(ProbeResult::Failure(reason)) => {
                    run.failures = run.failures.saturating_add(1);
                    let limit = self.settings.failures;
                    if limit.is_some_and(|limit| run.failures >= limit) && !has_ended {
                        return self.stop_after_probe(FailureReason::NotAlive(reason), context);
                    }
                }
            }
        }
    }

    /// Handles the end of its process.
    fn on_process_ended(&mut self, cause: ExitCause, context: &mut Context<'_>) -> bool {
        if let Some(run) = &mut self.run {
            run.stop_probe(context.processes);
        }
        let policy = self.settings.restart.policy;
        self.enter(Phase::Stopping(after_exit(policy, self.was_ready, cause)))
    }

    /// Stops its run because a probe failed.
    fn stop_after_probe(&mut self, reason: FailureReason, context: &mut Context<'_>) -> bool {
        let policy = self.settings.restart.policy;
        let then = after_probe(policy, self.was_ready, reason);
        self.stop_run(then, context)
    }

    pub(super) fn stop_run(&mut self, then: AfterExit, context: &mut Context<'_>) -> bool {
        let stop = self.settings.stop;
        self.previous = None;
        self.begin_log();
        if let Some(run) = &mut self.run {
            run.stop(stop.signal, stop.grace_ms, context);
        }
        self.enter(Phase::Stopping(then))
    }

    /// Checks whether everything of the run has ended.
    fn check_stopping(&mut self, context: &mut Context<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return self.enter(Phase::Stopped);
        };
        if run.cause(context.processes).is_none() {
            run.kill_if_late(context);
            return false;
        }
        run.kill_at = None;
        if !self.log.has_ended() {
            // The event for the rest of the output, or its end, may still be
            // pending.
            self.log.on_ready();
            self.log.read(ReadBudget::Full);
        }
        let limit = context.now.after_ms(TREE_GRACE_MS);
        let output_until = *run.output_until.get_or_insert(limit);
        if output_until <= context.now {
            self.log.truncate();
        }
        let exit = match run.final_exit(context.processes) {
            Some(exit) if self.log.has_ended() => exit,
            _ => return false,
        };
        self.on_run_ended(exit, context)
    }

    /// Handles the complete end of the run.
    fn on_run_ended(&mut self, exit: Option<Exit>, context: &mut Context<'_>) -> bool {
        let outputs_cut = self.log.truncate();
        self.last_exit = exit.map(|exit| Exit {
            stdout_bytes: self.log.run_bytes(),
            outputs_cut,
            ..exit
        });
        let mut ready_ms = 0;
        if let Some(run) = self.run.take() {
            run.release(context.processes);
            let ready_us = |since| context.now.microseconds_since(since);
            ready_ms = run.ready_since.map_or(0, ready_us).div_euclid(1000);
        }
        let Phase::Stopping(then) = core::mem::replace(&mut self.phase, Phase::Stopped) else {
            return false;
        };
        match then {
            AfterExit::Stop => self.enter(Phase::Stopped),
            AfterExit::Start => self.begin_start(),
            AfterExit::Restart => {
                let pause = self.backoff.next_ms(&self.settings.restart, ready_ms);
                self.enter(Phase::Pausing(context.now.after_ms(pause)))
            }
            AfterExit::Fail(reason) => self.enter(Phase::Failed(reason)),
        }
    }

    /// Handles a power-off: the service is not started again.
    pub(super) fn shut_down(&mut self, context: &mut Context<'_>) -> bool {
        match self.phase {
            Phase::Waiting(_) | Phase::Pausing(_) => self.enter(Phase::Stopped),
            Phase::Launching | Phase::Starting | Phase::Up | Phase::Stopping(_) => {
                self.previous = None;
                self.begin_log();
                if let Some(run) = &mut self.run {
                    run.stop_probe(context.processes);
                }
                self.enter(Phase::Stopping(AfterExit::Stop))
            }
            Phase::Stopped | Phase::Failed(_) => false,
        }
    }

    /// Returns the deadline for it to become ready.
    fn ready_deadline(&self) -> Option<Moment> {
        let run = self
            .run
            .as_ref()
            .filter(|_| matches!(self.phase, Phase::Launching | Phase::Starting))?;
        Some(run.started.after_ms(self.settings.ready_ms?.into()))
    }

    /// Returns when it must be checked next.
    pub(super) fn earliest_deadline(&self) -> Option<Moment> {
        let pause = match self.phase {
            Phase::Pausing(until) => Some(until),
            _ => None,
        };
        let run = self.run.as_ref();
        let cut = run.and_then(|run| run.output_until.filter(|_| !self.log.has_ended()));
        let run = run.and_then(Run::next_deadline);
        [pause, run, cut, self.ready_deadline()]
            .into_iter()
            .flatten()
            .min()
    }
}
