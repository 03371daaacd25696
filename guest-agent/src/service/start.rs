use alloc::{format, rc::Rc};

use vmcell_wire::{Failure, FailureKind, service::StartService};

use super::{
    Log, Phase, Refusal, Run, Service, ServiceId, Services,
    needs::{Needs, find_cycle},
    phase::{FailureReason, Then},
    restart::Backoff,
    run::World,
    table::MAX_SERVICES,
    terms::{Terms, check_name, decode},
};
use crate::{clock::Moment, event::Poller, tasks::Tasks};

impl Tasks {
    /// Starts a service, or has it wait for those that it needs.
    pub(super) fn start_service(
        &mut self,
        start: &StartService<'_>,
        poller: &Poller,
    ) -> Result<ServiceId, Refusal> {
        check_name(start.name)?;
        let terms = Terms::check(start.spec)?;
        let known = self.services.find(start.name);
        if let Some(service) = known
            && (service.ticket == start.ticket || service.goes_on(start)?)
        {
            return Ok(service.id);
        }
        let known = known.map(|service| service.id);
        if self.services.is_closing {
            let text = "the VM is being powered off";
            return Err(Refusal::new(FailureKind::Conflict, text));
        }
        if known.is_none() && self.services.is_full() {
            let text = format!("there are {MAX_SERVICES} services: remove some");
            return Err(Refusal::new(FailureKind::Limit, text));
        }
        self.services.check_needs(start.name, &terms)?;
        let needs = self.services.look_at_needs(&terms.needs);
        let id = known.unwrap_or_else(|| self.services.next_id());
        let keep = decode(start.spec)?.start.keep;
        let Self {
            services,
            processes,
            ..
        } = self;
        let mut world = World {
            processes,
            poller,
            now: Moment::now(),
        };
        let mut new = None;
        let service = match services.get_mut(id) {
            Some(service) => service,
            None => {
                let log = Log::new(keep);
                new.insert(Service::new(id, start.name, start.spec, terms, log))
            }
        };
        let is_new = known.is_none();
        service.start(start, needs, is_new, &mut world)?;
        if let Some(service) = new {
            services.insert(service);
        }
        services.phase_changed(id);
        services.tell(id);
        Ok(id)
    }
}

impl Services {
    /// Whether a service can ever have what it needs.
    fn check_needs(&self, name: &str, terms: &Terms) -> Result<(), Refusal> {
        let needs_of = |name: &str| {
            let known = self.find(name);
            known.map_or(&[][..], |service| &service.terms.needs)
        };
        if let Some(cycle) = find_cycle(name, &terms.needs, needs_of) {
            let text = format!("services need each other: {cycle}");
            return Err(Refusal::invalid(text));
        }
        match terms.needs.iter().find(|need| self.find(need).is_none()) {
            None => Ok(()),
            Some(need) => {
                let text = format!("there is no service {need}, which is needed: start it first");
                Err(Refusal::new(FailureKind::NotFound, text))
            }
        }
    }
}

impl Service {
    /// Whether nothing has to be done for this start, because it goes on as it
    /// does.
    fn goes_on(&self, start: &StartService<'_>) -> Result<bool, Refusal> {
        if self.is_over() {
            return Ok(false);
        }
        let conflict = |text: &'static str| Err(Refusal::new(FailureKind::Conflict, text));
        let is_same = *self.spec == *start.spec;
        match &self.phase {
            Phase::Ending(then) if *then != Then::Restart => {
                conflict("the service is being stopped: wait until it is")
            }
            _ if start.if_same && is_same => Ok(true),
            _ if start.if_same => {
                conflict("the service runs with another spec: stop or restart it")
            }
            _ => conflict("the service runs already: stop or restart it"),
        }
    }

    /// Starts one that is over. It stays as it was if its program cannot be
    /// executed now, and a new one does not stay at all.
    fn start(
        &mut self,
        start: &StartService<'_>,
        needs: Needs,
        is_new: bool,
        world: &mut World<'_>,
    ) -> Result<(), Refusal> {
        let spec: Rc<[u8]> = Rc::from(start.spec);
        let terms = Terms::check(&spec)?;
        let run = match needs {
            Needs::Met => Some(Run::begin(self.id, &self.name, &spec, world)?),
            Needs::Missing(_) | Needs::Over(_) => None,
        };
        let former = Former {
            is_new,
            spec: core::mem::replace(&mut self.spec, spec),
            terms: core::mem::replace(&mut self.terms, terms),
            ticket: core::mem::replace(&mut self.ticket, start.ticket),
            phase: self.phase.clone(),
            since: self.since,
            restarts: self.restarts,
            backoff: core::mem::take(&mut self.backoff),
            was_ready: self.was_ready,
        };
        self.begin_anew();
        match (run, needs) {
            (Some(run), _) => {
                self.former = Some(former);
                self.launches(run)
            }
            (None, Needs::Over(need)) => self.enter(Phase::Failed(FailureReason::Need(need))),
            (None, Needs::Missing(need)) => self.enter(Phase::Waiting(need)),
            (None, Needs::Met) => false,
        };
        Ok(())
    }

    /// There is no program: goes back to how it was before the start, if
    /// somebody asked for that.
    pub(super) fn launch_failed(&mut self, failure: Failure<'static>) -> bool {
        let Some(former) = self.former.take() else {
            return self.enter(Phase::Failed(FailureReason::NotStarted(failure)));
        };
        self.refused = Some((self.starts, failure));
        self.spec = former.spec;
        self.terms = former.terms;
        self.ticket = former.ticket;
        self.phase = former.phase;
        self.since = former.since;
        self.restarts = former.restarts;
        self.backoff = former.backoff;
        self.was_ready = former.was_ready;
        self.is_removed |= former.is_new;
        true
    }
}

/// What a start changes, before it is known whether there is a program.
pub(super) struct Former {
    /// There was no such service.
    is_new: bool,
    spec: Rc<[u8]>,
    terms: Terms,
    ticket: u64,
    phase: Phase,
    since: Moment,
    restarts: u32,
    backoff: Backoff,
    was_ready: bool,
}
