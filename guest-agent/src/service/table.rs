use alloc::{
    collections::{BTreeSet, VecDeque},
    string::String,
    vec::Vec,
};

use rustix::process::Pid;

use super::{Phase, Run, Service, log::ReadBudget, needs::Needs};
use crate::{
    clock::Moment,
    ids::{Caller, LinkId, ProcessId, ServiceId},
};

/// All services.
pub(crate) struct Services {
    /// Sorted by name.
    all: Vec<Service>,
    last_id: ServiceId,
    /// Services that have changed.
    changed: VecDeque<ServiceId>,
    /// Services whose log has more to read than one turn allows.
    read_queue: Vec<ServiceId>,
    deadlines: BTreeSet<(Moment, ServiceId)>,
    /// Links whose streams may have frames to send.
    links_to_serve: Vec<LinkId>,
    /// Whether the VM is being powered off and no service may start.
    pub(super) is_closing: bool,
}

/// The maximum number of services.
pub(super) const MAX_SERVICES: usize = 256;

impl Services {
    pub(crate) const fn new() -> Self {
        Self {
            all: Vec::new(),
            last_id: ServiceId(0),
            changed: VecDeque::new(),
            read_queue: Vec::new(),
            deadlines: BTreeSet::new(),
            links_to_serve: Vec::new(),
            is_closing: false,
        }
    }

    pub(crate) fn get_mut(&mut self, id: ServiceId) -> Option<&mut Service> {
        self.all.iter_mut().find(|service| service.id == id)
    }

    /// Returns the service with this name.
    pub(super) fn find(&self, name: &str) -> Option<&Service> {
        self.visible().find(|service| service.name == name)
    }

    /// Returns all services, sorted by name.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Service> {
        self.all.iter().filter(|service| !service.is_removed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= MAX_SERVICES
    }

    /// Returns the id of the next service.
    pub(super) fn next_id(&mut self) -> ServiceId {
        self.last_id = ServiceId(self.last_id.0.wrapping_add(1));
        self.last_id
    }

    pub(super) fn insert(&mut self, service: Service) {
        let place = self.all.partition_point(|other| other.name < service.name);
        self.all.insert(place, service);
    }

    /// Removes a service, as soon as no stream watches it.
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

    /// Adds a stream that watches a service.
    pub(super) fn add_watcher(&mut self, id: ServiceId, caller: Caller) {
        if let Some(service) = self.get_mut(id) {
            service.watchers.push(caller);
        }
    }

    /// Removes a stream that watched a service.
    pub(crate) fn remove_watcher(&mut self, id: ServiceId, caller: Caller) {
        if let Some(service) = self.get_mut(id) {
            service.watchers.retain(|other| *other != caller);
        }
        self.drop_if_removed(id);
    }

    /// Returns the state of what a waiting service needs.
    pub(super) fn needs_of(&self, id: ServiceId) -> Needs {
        let waits =
            |service: &&Service| service.id == id && matches!(service.phase, Phase::Waiting(_));
        match self.all.iter().find(waits) {
            Some(service) => self.evaluate_needs(&service.settings.needs),
            None => Needs::Met,
        }
    }

    pub(super) fn evaluate_needs(&self, needs: &[String]) -> Needs {
        let mut missing = None;
        for name in needs {
            match self.find(name) {
                Some(need) if need.phase == Phase::Up => {}
                Some(need) if !need.is_final() => {
                    missing.get_or_insert(name);
                }
                _ => return Needs::Failed(name.clone()),
            }
        }
        missing.map_or(Needs::Met, |name| Needs::Missing(name.clone()))
    }

    /// Handles a phase change: wakes the streams and the services that wait for
    /// it.
    pub(super) fn phase_changed(&mut self, id: ServiceId) {
        self.wake(id);
        for service in &self.all {
            if matches!(service.phase, Phase::Waiting(_)) && !self.changed.contains(&service.id) {
                self.changed.push_back(service.id);
            }
        }
    }

    /// Handles a change of a process of a service.
    pub(super) fn process_changed(&mut self, process: ProcessId) {
        let concerned = |service: &&Service| {
            let run = service.run.as_ref();
            run.is_some_and(|run| run.uses_process(process))
        };
        if let Some(id) = self.all.iter().find(concerned).map(|service| service.id) {
            self.mark_changed(id);
        }
    }

    /// Handles the end of a child, which may have been the probe of a service.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        let probe = |service: &mut Service| {
            let run = service.run.as_mut();
            let probe = run.and_then(|run| run.probe.as_mut());
            probe
                .is_some_and(|probe| probe.reaped(pid))
                .then_some(service.id)
        };
        if let Some(id) = self.all.iter_mut().find_map(probe) {
            self.mark_changed(id);
        }
    }

    /// Handles an epoll event of a log.
    pub(crate) fn on_log_ready(&mut self, id: ServiceId) {
        if let Some(service) = self.get_mut(id) {
            service.log.on_ready();
            self.mark_changed(id);
        }
    }

    /// Marks a service to be checked.
    pub(crate) fn mark_changed(&mut self, id: ServiceId) {
        if !self.changed.contains(&id) {
            self.changed.push_back(id);
        }
    }

    /// Marks the services whose deadline has passed or that have more to read.
    pub(super) fn begin_turn(&mut self) {
        let now = self.deadlines.first().map(|_| Moment::now());
        while let Some((at, id)) = self.deadlines.first().copied()
            && now.is_some_and(|now| at <= now)
        {
            self.deadlines.pop_first();
            self.mark_changed(id);
        }
        for id in core::mem::take(&mut self.read_queue) {
            self.mark_changed(id);
        }
    }

    pub(super) fn next_changed(&mut self) -> Option<ServiceId> {
        self.changed.pop_front()
    }

    /// Reads the log of a service, as far as one turn allows.
    pub(super) fn read_log(&mut self, id: ServiceId) {
        let Some(service) = self.get_mut(id) else {
            return;
        };
        let run = service.run.as_ref();
        let budget = run.map_or(ReadBudget::Full, Run::read_budget);
        if service.log.read(budget) {
            self.wake(id);
        }
    }

    /// Schedules the next check of a service.
    pub(super) fn end_turn(&mut self, id: ServiceId) {
        self.drop_if_removed(id);
        let Some(service) = self.get_mut(id) else {
            return;
        };
        let more = service.log.has_more() || service.run.as_ref().is_some_and(Run::is_behind);
        let next = service.earliest_deadline();
        let previous = core::mem::replace(&mut service.next_deadline, next);
        if let Some(previous) = previous {
            self.deadlines.remove(&(previous, id));
        }
        if let Some(next) = next {
            self.deadlines.insert((next, id));
        }
        if more && !self.read_queue.contains(&id) {
            self.read_queue.push(id);
        }
    }

    /// Returns the next deadline of any service.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns whether there is work to do without an event.
    pub(crate) fn is_busy(&self) -> bool {
        !self.changed.is_empty() || !self.read_queue.is_empty()
    }

    /// Wakes all streams that watch a service.
    fn wake(&mut self, id: ServiceId) {
        let Some(service) = self.all.iter().find(|service| service.id == id) else {
            return;
        };
        for caller in &service.watchers {
            if !self.links_to_serve.contains(&caller.link) {
                self.links_to_serve.push(caller.link);
            }
        }
    }

    /// Returns a link whose streams may have frames to send.
    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        self.links_to_serve.pop()
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        !self.links_to_serve.is_empty()
    }

    /// Returns the ids of all services.
    pub(super) fn ids(&self) -> Vec<ServiceId> {
        self.all.iter().map(|service| service.id).collect()
    }
}
