//! What happens to services by itself.

use alloc::string::String;

use vmcell_wire::{Cause, Exit};

use super::{
    Phase, Run, Service, ServiceId,
    log::Pace,
    needs::Needs,
    phase::{FailureReason, Then},
    restart::{after_exit, after_probe},
    run::World,
    terms::decode,
};
use crate::{
    clock::Moment,
    event::Poller,
    probe::{Finding, Probing, Purpose},
    process::HOLD_MS,
    tasks::Tasks,
};

impl Tasks {
    /// Moves on every service to which something has happened.
    pub(crate) fn look_after_services(&mut self, poller: &Poller) {
        while let Some(process) = self.processes.next_looked_after() {
            self.services.process_changed(process);
        }
        self.services.begin_turn();
        while let Some(id) = self.services.next_news() {
            self.look_after(id, poller);
        }
    }

    fn look_after(&mut self, id: ServiceId, poller: &Poller) {
        self.services.read_log(id);
        loop {
            let needs = self.services.needs_of(id);
            let Self {
                services,
                processes,
                ..
            } = self;
            let Some(service) = services.get_mut(id) else {
                return;
            };
            let mut world = World {
                processes,
                poller,
                now: Moment::now(),
            };
            if !service.step(needs, &mut world) {
                break;
            }
            services.phase_changed(id);
        }
        self.services.end_turn(id);
    }
}

impl Service {
    /// Moves on by one phase, if it can. Answers whether it did.
    fn step(&mut self, needs: Needs, world: &mut World<'_>) -> bool {
        match &self.phase {
            Phase::Waiting(waiting) => match needs {
                Needs::Missing(need) if need == *waiting => false,
                Needs::Missing(need) => self.enter(Phase::Waiting(need)),
                Needs::Over(need) => self.enter(Phase::Failed(FailureReason::Need(need))),
                Needs::Met => self.run_anew(world),
            },
            Phase::Launching => self.watch_launch(world),
            Phase::Starting | Phase::Up => self.watch(world),
            Phase::Ending(_) => self.end(world),
            Phase::Pausing(until) if *until <= world.now => {
                self.restarts = self.restarts.saturating_add(1);
                self.run_anew(world)
            }
            Phase::Pausing(_) | Phase::Stopped | Phase::Failed(_) => false,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) -> bool {
        self.phase = phase;
        self.since = Moment::now();
        if self.is_over() {
            self.log.rest();
        }
        true
    }

    /// Somebody has started it: whatever was before does not count any more.
    /// It waits for what it needs, if only for a moment.
    pub(super) fn begin_anew(&mut self) -> bool {
        self.starts = self.starts.saturating_add(1);
        self.restarts = 0;
        self.was_ready = false;
        self.backoff = Default::default();
        self.enter(Phase::Waiting(String::new()))
    }

    fn run_anew(&mut self, world: &mut World<'_>) -> bool {
        match Run::begin(self.id, &self.name, &self.spec, world) {
            Ok(run) => self.launches(run),
            Err(failure) => self.enter(Phase::Failed(FailureReason::NotStarted(failure))),
        }
    }

    /// A run has begun, but for its program.
    pub(super) fn launches(&mut self, run: Run) -> bool {
        self.run = Some(run);
        self.enter(Phase::Launching)
    }

    /// Looks whether the program was executed.
    fn watch_launch(&mut self, world: &mut World<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return self.enter(Phase::Failed(FailureReason::Died));
        };
        match run.launched(world.processes) {
            None => self.give_up_if_late(world),
            Some(Ok(())) => self.runs(world.now),
            Some(Err(failure)) => {
                run.let_go(world.processes);
                self.run = None;
                self.launch_failed(failure)
            }
        }
    }

    /// The program was executed.
    fn runs(&mut self, now: Moment) -> bool {
        self.former = None;
        self.begin_log();
        if let Ok(spec) = decode(&self.spec) {
            // Without memory for another size it keeps the one that it has.
            let _ = self.log.keep(spec.start.keep);
        }
        if self.terms.ready_ms.is_none() {
            return self.is_up(now);
        }
        if let Some(run) = &mut self.run {
            let log_from = self.log.run_start();
            run.probing = Probing::new(&self.spec, Purpose::Ready, log_from, now);
        }
        self.enter(Phase::Starting)
    }

    /// The log goes on with what the run prints.
    fn begin_log(&mut self) {
        if let Some(run) = &mut self.run {
            run.begin_log(&mut self.log);
        }
    }

    /// It does its work.
    fn is_up(&mut self, now: Moment) -> bool {
        self.was_ready = true;
        if let Some(run) = &mut self.run {
            run.ready_since = Some(now);
            run.probing = match self.terms.failures {
                Some(_) => Probing::new(&self.spec, Purpose::Alive, self.log.run_start(), now),
                None => None,
            };
        }
        self.enter(Phase::Up)
    }

    /// Looks how the run is.
    fn watch(&mut self, world: &mut World<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return self.enter(Phase::Failed(FailureReason::Died));
        };
        // What has ended may have said before that it is ready.
        let cause = run.cause(world.processes);
        if cause.is_some() {
            self.log.is_ready();
            self.log.read(run.pace());
        }
        if self.heed_probe(cause.is_some(), world) {
            return true;
        }
        if cause.is_some() && self.may_have_said_more(world.now) {
            return false;
        }
        if let Some(cause) = cause {
            return self.died(cause, world);
        }
        self.give_up_if_late(world)
    }

    /// Ends a run that is not ready although its time is over.
    fn give_up_if_late(&mut self, world: &mut World<'_>) -> bool {
        let late = self.alarm_of_readiness();
        if late.is_some_and(|late| late <= world.now) {
            let reason = self.run.as_mut().map(Run::take_reason);
            return self.give_up(FailureReason::NotReady(reason.unwrap_or_default()), world);
        }
        false
    }

    /// Whether the last words of a run that has ended were not all read, in which
    /// it may have said that it was ready.
    fn may_have_said_more(&mut self, now: Moment) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        let cut_at = *run.cut_at.get_or_insert(now.after_ms(HOLD_MS));
        let more = run.is_behind() || self.log.has_more();
        run.pace() != Pace::Fast && more && now < cut_at
    }

    /// Answers whether its probe has made a difference.
    fn heed_probe(&mut self, has_ended: bool, world: &mut World<'_>) -> bool {
        let id = self.id;
        loop {
            let Some(run) = &mut self.run else {
                return false;
            };
            let ring = self.log.ring();
            let finding = run
                .probing
                .as_mut()
                .and_then(|probing| probing.next(id, ring, has_ended, world));
            match finding {
                None => return false,
                Some(Finding::Success) if self.phase == Phase::Starting => {
                    run.end_probing(world.processes);
                    return self.is_up(world.now);
                }
                Some(Finding::Success) => run.failures = 0,
                Some(Finding::Failure(reason)) if self.phase == Phase::Starting => {
                    run.reason = Some(reason);
                }
                Some(Finding::Failure(reason)) => {
                    run.failures = run.failures.saturating_add(1);
                    if self.terms.failures.is_some_and(|most| run.failures >= most) && !has_ended {
                        return self.give_up(FailureReason::NotAlive(reason), world);
                    }
                }
            }
        }
    }

    /// Its process has ended by itself.
    fn died(&mut self, cause: Cause, world: &mut World<'_>) -> bool {
        if let Some(run) = &mut self.run {
            run.end_probing(world.processes);
        }
        let policy = self.terms.restart.policy;
        self.enter(Phase::Ending(after_exit(policy, self.was_ready, cause)))
    }

    /// Its run is ended because of what its probe says.
    fn give_up(&mut self, reason: FailureReason, world: &mut World<'_>) -> bool {
        let policy = self.terms.restart.policy;
        let then = after_probe(policy, self.was_ready, reason);
        self.stop_run(then, world)
    }

    pub(super) fn stop_run(&mut self, then: Then, world: &mut World<'_>) -> bool {
        let stop = self.terms.stop;
        self.former = None;
        self.begin_log();
        if let Some(run) = &mut self.run {
            run.stop(stop.signal, stop.grace_ms, world);
        }
        self.enter(Phase::Ending(then))
    }

    /// Waits for the end of the run.
    fn end(&mut self, world: &mut World<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return self.enter(Phase::Stopped);
        };
        if run.cause(world.processes).is_none() {
            run.kill_if_late(world);
            return false;
        }
        run.kill_at = None;
        if !self.log.has_ended() {
            // The kernel's word that there is something, if only the end, may
            // still be on its way.
            self.log.is_ready();
            self.log.read(Pace::Fast);
        }
        let cut_at = *run.cut_at.get_or_insert(world.now.after_ms(HOLD_MS));
        if cut_at <= world.now {
            self.log.cut();
        }
        let exit = match run.settled(world.processes) {
            Some(exit) if self.log.has_ended() => exit,
            _ => return false,
        };
        self.is_gone(exit, world)
    }

    /// Nothing of the run is left.
    fn is_gone(&mut self, exit: Option<Exit>, world: &mut World<'_>) -> bool {
        let outputs_cut = self.log.cut();
        self.last_exit = exit.map(|exit| Exit {
            stdout_bytes: self.log.run_bytes(),
            outputs_cut,
            ..exit
        });
        let mut ready_ms = 0;
        if let Some(run) = self.run.take() {
            run.let_go(world.processes);
            let ready_us = |since| world.now.microseconds_since(since);
            ready_ms = run.ready_since.map_or(0, ready_us).div_euclid(1000);
        }
        let Phase::Ending(then) = core::mem::replace(&mut self.phase, Phase::Stopped) else {
            return false;
        };
        match then {
            Then::Stop => self.enter(Phase::Stopped),
            Then::Start => self.begin_anew(),
            Then::Restart => {
                let pause = self.backoff.next_ms(&self.terms.restart, ready_ms);
                self.enter(Phase::Pausing(world.now.after_ms(pause)))
            }
            Then::Fail(reason) => self.enter(Phase::Failed(reason)),
        }
    }

    /// The power goes: it is not started again.
    pub(super) fn close(&mut self, world: &mut World<'_>) -> bool {
        match self.phase {
            Phase::Waiting(_) | Phase::Pausing(_) => self.enter(Phase::Stopped),
            Phase::Launching | Phase::Starting | Phase::Up | Phase::Ending(_) => {
                self.former = None;
                self.begin_log();
                if let Some(run) = &mut self.run {
                    run.end_probing(world.processes);
                }
                self.enter(Phase::Ending(Then::Stop))
            }
            Phase::Stopped | Phase::Failed(_) => false,
        }
    }

    /// When it must be ready.
    fn alarm_of_readiness(&self) -> Option<Moment> {
        let run = self
            .run
            .as_ref()
            .filter(|_| matches!(self.phase, Phase::Launching | Phase::Starting))?;
        Some(run.started.after_ms(self.terms.ready_ms?.into()))
    }

    /// When it must be looked at again.
    pub(super) fn next_alarm(&self) -> Option<Moment> {
        let pause = match self.phase {
            Phase::Pausing(until) => Some(until),
            _ => None,
        };
        let run = self.run.as_ref();
        let cut = run.and_then(|run| run.cut_at.filter(|_| !self.log.has_ended()));
        let run = run.and_then(Run::alarm);
        [pause, run, cut, self.alarm_of_readiness()]
            .into_iter()
            .flatten()
            .min()
    }
}
