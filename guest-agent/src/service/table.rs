use alloc::{
    collections::{BTreeSet, VecDeque},
    string::String,
    vec::Vec,
};

use rustix::process::Pid;

use super::{Phase, Run, Service, ServiceId, log::Pace, needs::Needs};
use crate::{
    clock::Moment,
    link::LinkId,
    process::{Caller, ProcessId},
};

/// All services.
pub(crate) struct Services {
    /// In the order of their names.
    all: Vec<Service>,
    last: ServiceId,
    /// Those to which something has happened.
    news: VecDeque<ServiceId>,
    /// Those whose log has more than one turn allows to read.
    busy: Vec<ServiceId>,
    alarms: BTreeSet<(Moment, ServiceId)>,
    /// Links whose streams may have something to say.
    awake: Vec<LinkId>,
    /// None is started any more.
    pub(super) is_closing: bool,
}

/// More services are refused.
pub(super) const MAX_SERVICES: usize = 256;

impl Services {
    pub(crate) const fn new() -> Self {
        Self {
            all: Vec::new(),
            last: ServiceId(0),
            news: VecDeque::new(),
            busy: Vec::new(),
            alarms: BTreeSet::new(),
            awake: Vec::new(),
            is_closing: false,
        }
    }

    pub(crate) fn get_mut(&mut self, id: ServiceId) -> Option<&mut Service> {
        self.all.iter_mut().find(|service| service.id == id)
    }

    /// The service with this name.
    pub(super) fn find(&self, name: &str) -> Option<&Service> {
        self.known().find(|service| service.name == name)
    }

    /// All services in the order of their names.
    pub(super) fn known(&self) -> impl Iterator<Item = &Service> {
        self.all.iter().filter(|service| !service.is_removed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= MAX_SERVICES
    }

    /// The id of the next one.
    pub(super) fn next_id(&mut self) -> ServiceId {
        self.last = ServiceId(self.last.0.wrapping_add(1));
        self.last
    }

    pub(super) fn insert(&mut self, service: Service) {
        let place = self.all.partition_point(|other| other.name < service.name);
        self.all.insert(place, service);
    }

    /// Forgets a service, as soon as nobody reads its log any more.
    pub(super) fn remove(&mut self, id: ServiceId) {
        if let Some(service) = self.get_mut(id) {
            service.is_removed = true;
        }
        self.drop_if_removed(id);
    }

    fn drop_if_removed(&mut self, id: ServiceId) {
        self.all.retain(|service| {
            service.id != id || !service.is_removed || !service.watchers.is_empty()
        });
    }

    /// A stream wants to be told of a service.
    pub(super) fn join(&mut self, id: ServiceId, caller: Caller) {
        if let Some(service) = self.get_mut(id) {
            service.watchers.push(caller);
        }
    }

    /// A stream is gone.
    pub(crate) fn leave(&mut self, id: ServiceId, caller: Caller) {
        if let Some(service) = self.get_mut(id) {
            service.watchers.retain(|other| *other != caller);
        }
        self.drop_if_removed(id);
    }

    /// How the services are that one needs.
    pub(super) fn needs_of(&self, id: ServiceId) -> Needs {
        let waits =
            |service: &&Service| service.id == id && matches!(service.phase, Phase::Waiting(_));
        match self.all.iter().find(waits) {
            Some(service) => self.look_at_needs(&service.terms.needs),
            None => Needs::Met,
        }
    }

    pub(super) fn look_at_needs(&self, needs: &[String]) -> Needs {
        let mut missing = None;
        for name in needs {
            match self.find(name) {
                Some(need) if need.phase == Phase::Up => {}
                Some(need) if !need.is_over() => {
                    missing.get_or_insert(name);
                }
                _ => return Needs::Over(name.clone()),
            }
        }
        missing.map_or(Needs::Met, |name| Needs::Missing(name.clone()))
    }

    /// A service has another phase: who waits for it is told.
    pub(super) fn phase_changed(&mut self, id: ServiceId) {
        self.wake(id);
        for service in &self.all {
            if matches!(service.phase, Phase::Waiting(_)) && !self.news.contains(&service.id) {
                self.news.push_back(service.id);
            }
        }
    }

    /// Something has happened to a process of a service.
    pub(super) fn process_changed(&mut self, process: ProcessId) {
        let concerned = |service: &&Service| {
            let run = service.run.as_ref();
            run.is_some_and(|run| run.is(process))
        };
        if let Some(id) = self.all.iter().find(concerned).map(|service| service.id) {
            self.tell(id);
        }
    }

    /// A child has ended; it may have been looking at a service.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        let probing = |service: &mut Service| {
            let run = service.run.as_mut();
            let probing = run.and_then(|run| run.probing.as_mut());
            probing
                .is_some_and(|probing| probing.reaped(pid))
                .then_some(service.id)
        };
        if let Some(id) = self.all.iter_mut().find_map(probing) {
            self.tell(id);
        }
    }

    /// The log of a service has something.
    pub(crate) fn log_is_ready(&mut self, id: ServiceId) {
        if let Some(service) = self.get_mut(id) {
            service.log.is_ready();
            self.tell(id);
        }
    }

    /// A service must be looked at.
    pub(crate) fn tell(&mut self, id: ServiceId) {
        if !self.news.contains(&id) {
            self.news.push_back(id);
        }
    }

    /// Notes whose time has come, and who wants to go on reading.
    pub(super) fn begin_turn(&mut self) {
        let now = self.alarms.first().map(|_| Moment::now());
        while let Some((at, id)) = self.alarms.first().copied()
            && now.is_some_and(|now| at <= now)
        {
            self.alarms.pop_first();
            self.tell(id);
        }
        for id in core::mem::take(&mut self.busy) {
            self.tell(id);
        }
    }

    pub(super) fn next_news(&mut self) -> Option<ServiceId> {
        self.news.pop_front()
    }

    /// Reads what a service has printed, as far as one turn allows.
    pub(super) fn read_log(&mut self, id: ServiceId) {
        let Some(service) = self.get_mut(id) else {
            return;
        };
        let pace = service.run.as_ref().map_or(Pace::Fast, Run::pace);
        if service.log.read(pace) {
            self.wake(id);
        }
    }

    /// Has a service looked at again when it must be.
    pub(super) fn end_turn(&mut self, id: ServiceId) {
        self.drop_if_removed(id);
        let Some(service) = self.get_mut(id) else {
            return;
        };
        let more = service.log.has_more() || service.run.as_ref().is_some_and(Run::is_behind);
        let next = service.next_alarm();
        let former = core::mem::replace(&mut service.alarm, next);
        if let Some(former) = former {
            self.alarms.remove(&(former, id));
        }
        if let Some(next) = next {
            self.alarms.insert((next, id));
        }
        if more && !self.busy.contains(&id) {
            self.busy.push(id);
        }
    }

    /// When some service must be looked at again.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Whether there is something to do without an event.
    pub(crate) fn is_busy(&self) -> bool {
        !self.news.is_empty() || !self.busy.is_empty()
    }

    /// Has everybody served who waits for a service.
    fn wake(&mut self, id: ServiceId) {
        let Some(service) = self.all.iter().find(|service| service.id == id) else {
            return;
        };
        for caller in &service.watchers {
            if !self.awake.contains(&caller.link) {
                self.awake.push(caller.link);
            }
        }
    }

    /// A link whose streams may have something to say.
    pub(crate) fn next_awake(&mut self) -> Option<LinkId> {
        self.awake.pop()
    }

    pub(crate) fn is_awake(&self) -> bool {
        !self.awake.is_empty()
    }

    /// The ids of all services.
    pub(super) fn ids(&self) -> Vec<ServiceId> {
        self.all.iter().map(|service| service.id).collect()
    }
}
