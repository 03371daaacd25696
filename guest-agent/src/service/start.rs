use alloc::{format, rc::Rc};

use vmcell_wire::{Failure, FailureKind, service::StartService};

use super::{
    Log, Phase, Run, Service, ServiceError, Services,
    needs::{Needs, find_cycle},
    phase::{AfterExit, FailureReason},
    restart::Backoff,
    settings::{Settings, check_name, decode},
    table::MAX_SERVICES,
};
use crate::{
    clock::Moment,
    event::Poller,
    ids::ServiceId,
    process::{Context, Processes},
};

impl Services {
    /// Starts a service, or makes it wait for those that it needs.
    pub(super) fn start(
        &mut self,
        start: &StartService<'_>,
        processes: &mut Processes,
        poller: &Poller,
    ) -> Result<ServiceId, ServiceError> {
        check_name(start.name)?;
        let settings = Settings::check(start.spec)?;
        let known = self.find(start.name);
        if let Some(service) = known
            && (service.ticket == start.ticket || service.already_satisfies(start)?)
        {
            return Ok(service.id);
        }
        let known = known.map(|service| service.id);
        if self.is_closing {
            let text = "the VM is being powered off";
            return Err(ServiceError::new(FailureKind::Conflict, text));
        }
        if known.is_none() && self.is_full() {
            let text = format!("there are {MAX_SERVICES} services: remove some");
            return Err(ServiceError::new(FailureKind::Limit, text));
        }
        self.check_needs(start.name, &settings)?;
        let needs = self.evaluate_needs(&settings.needs);
        let id = known.unwrap_or_else(|| self.next_id());
        let keep = decode(start.spec)?.start.keep;
        let mut context = Context {
            processes,
            poller,
            now: Moment::now(),
        };
        let mut new = None;
        let service = match self.get_mut(id) {
            Some(service) => service,
            None => {
                let log = Log::new(keep);
                new.insert(Service::new(id, start.name, start.spec, settings, log))
            }
        };
        let is_new = known.is_none();
        service.start(start, needs, is_new, &mut context)?;
        if let Some(service) = new {
            self.insert(service);
        }
        self.phase_changed(id);
        self.mark_changed(id);
        Ok(id)
    }

    /// Checks that the needs of a service exist and have no cycle.
    fn check_needs(&self, name: &str, settings: &Settings) -> Result<(), ServiceError> {
        let needs_of = |name: &str| {
            let known = self.find(name);
            known.map_or(&[][..], |service| &service.settings.needs)
        };
        if let Some(cycle) = find_cycle(name, &settings.needs, needs_of) {
            let text = format!("services need each other: {cycle}");
            return Err(ServiceError::invalid(text));
        }
        match settings.needs.iter().find(|need| self.find(need).is_none()) {
            None => Ok(()),
            Some(need) => {
                let text = format!("there is no service {need}, which is needed: start it first");
                Err(ServiceError::new(FailureKind::NotFound, text))
            }
        }
    }
}

impl Service {
    /// Returns whether nothing has to be done for a start because the service
    /// already runs as requested.
    fn already_satisfies(&self, start: &StartService<'_>) -> Result<bool, ServiceError> {
        if self.is_final() {
            return Ok(false);
        }
        let conflict = |text: &'static str| Err(ServiceError::new(FailureKind::Conflict, text));
        let is_same = *self.spec == *start.spec;
        match &self.phase {
            Phase::Stopping(then) if *then != AfterExit::Restart => {
                conflict("the service is being stopped: wait until it is")
            }
            _ if start.if_same && is_same => Ok(true),
            _ if start.if_same => {
                conflict("the service runs with another spec: stop or restart it")
            }
            _ => conflict("the service runs already: stop or restart it"),
        }
    }

    /// Starts a stopped service. If its program cannot be executed now, it
    /// stays as it was, and a new one is removed.
    fn start(
        &mut self,
        start: &StartService<'_>,
        needs: Needs,
        is_new: bool,
        context: &mut Context<'_>,
    ) -> Result<(), ServiceError> {
        let spec: Rc<[u8]> = Rc::from(start.spec);
        let settings = Settings::check(&spec)?;
        let run = match needs {
            Needs::Met => Some(Run::begin(self.id, &self.name, &spec, context)?),
            Needs::Missing(_) | Needs::Failed(_) => None,
        };
        let previous = PreviousState {
            is_new,
            spec: core::mem::replace(&mut self.spec, spec),
            settings: core::mem::replace(&mut self.settings, settings),
            ticket: core::mem::replace(&mut self.ticket, start.ticket),
            phase: self.phase.clone(),
            since: self.since,
            restarts: self.restarts,
            backoff: core::mem::take(&mut self.backoff),
            was_ready: self.was_ready,
        };
        self.begin_start();
        match (run, needs) {
            (Some(run), _) => {
                self.previous = Some(previous);
                self.enter_launching(run)
            }
            (None, Needs::Failed(need)) => {
                self.enter(Phase::Failed(FailureReason::DependencyFailed(need)))
            }
            (None, Needs::Missing(need)) => self.enter(Phase::Waiting(need)),
            (None, Needs::Met) => false,
        };
        Ok(())
    }

    /// Handles a failed launch. After a requested start, restores the state
    /// before it.
    pub(super) fn launch_failed(&mut self, failure: Failure<'static>) -> bool {
        let Some(previous) = self.previous.take() else {
            return self.enter(Phase::Failed(FailureReason::NotStarted(failure)));
        };
        self.failed_start = Some((self.starts, failure));
        self.spec = previous.spec;
        self.settings = previous.settings;
        self.ticket = previous.ticket;
        self.phase = previous.phase;
        self.since = previous.since;
        self.restarts = previous.restarts;
        self.backoff = previous.backoff;
        self.was_ready = previous.was_ready;
        self.is_removed |= previous.is_new;
        true
    }
}

/// The state before a start, kept until its program is executed.
pub(super) struct PreviousState {
    /// The service did not exist.
    is_new: bool,
    spec: Rc<[u8]>,
    settings: Settings,
    ticket: u64,
    phase: Phase,
    since: Moment,
    restarts: u32,
    backoff: Backoff,
    was_ready: bool,
}
