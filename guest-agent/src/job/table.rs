use alloc::vec::Vec;

use rustix::process::Pid;
use vmcell_wire::{Failure, FailureKind, Outcome, Request, Stage};

use super::staff::Worker;
use crate::{
    event::{Event, Poller},
    link::LinkId,
    process::Caller,
    sys::Consumer,
};

/// Names a job: the place of its worker, and which of its jobs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobId {
    place: u32,
    number: u32,
}

/// All workers, and what they do.
pub(crate) struct Jobs {
    /// The place in the list is the worker's id.
    places: Vec<Option<Place>>,
    last: u32,
    /// Links whose streams may have something to say.
    awake: Vec<LinkId>,
    /// No worker is kept any more.
    is_closing: bool,
}

struct Place {
    worker: Worker,
    /// None: it is idle.
    job: Option<Job>,
}

struct Job {
    number: u32,
    /// None: nobody is told any more.
    caller: Option<Caller>,
    /// Its worker is gone.
    is_dead: bool,
}

impl Place {
    fn is_over(&self) -> bool {
        self.worker.has_finished() || self.job.as_ref().is_some_and(|job| job.is_dead)
    }
}

/// More jobs at once are refused. Hosts let theirs wait long before that.
const MAX_WORKERS: usize = 96;

/// So many idle workers are kept.
const MAX_IDLE: usize = 2;

impl Jobs {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            last: 0,
            awake: Vec::new(),
            is_closing: false,
        }
    }

    /// Has a worker begin a job.
    pub(crate) fn begin(
        &mut self,
        request: &Request<'_>,
        caller: Caller,
        poller: &Poller,
    ) -> Result<JobId, Failure<'static>> {
        let place = match self.idle_place() {
            Some(place) => place,
            None => self.hire(poller)?,
        };
        self.last = self.last.wrapping_add(1);
        let number = self.last;
        let slot = self.place_mut(place).ok_or_else(no_worker)?;
        slot.worker.begin(request).map_err(|_| {
            let text = "the request is too large";
            Failure::new(FailureKind::Limit, Stage::Request, text)
        })?;
        slot.job = Some(Job {
            number,
            caller: Some(caller),
            is_dead: false,
        });
        Ok(JobId { place, number })
    }

    /// More input for a job.
    pub(crate) fn give(&mut self, id: JobId, bytes: &[u8]) {
        if let Some(worker) = self.worker_mut(id) {
            worker.give(bytes);
        }
    }

    pub(crate) fn end_input(&mut self, id: JobId) {
        if let Some(worker) = self.worker_mut(id) {
            worker.end_input();
        }
    }

    /// Nobody wants the job any more. It is told when it has stopped.
    pub(crate) fn cancel(&mut self, id: JobId) {
        if let Some(worker) = self.worker_mut(id) {
            worker.cancel();
        }
    }

    /// Nobody is left to be told.
    pub(crate) fn abandon(&mut self, id: JobId) {
        self.cancel(id);
        if let Some(job) = self.slot_mut(id).and_then(|slot| slot.job.as_mut()) {
            job.caller = None;
        }
        self.let_go(id.place);
    }

    /// How many bytes of its input a job has no more use for.
    pub(crate) fn consumed(&mut self, id: JobId) -> u64 {
        self.worker_mut(id).map_or(0, |worker| worker.consumed())
    }

    /// Output before `offset` is on its way; answers where the output ends so
    /// far.
    pub(crate) fn sent(&mut self, id: JobId, offset: u64) -> u64 {
        self.worker_mut(id).map_or(offset, |worker| {
            worker.sent(offset);
            worker.output_end()
        })
    }

    pub(crate) fn output(&mut self, id: JobId) -> Option<&mut Consumer> {
        self.worker_mut(id).map(Worker::output)
    }

    /// Whether a job gives no more than it has given.
    pub(crate) fn is_over(&mut self, id: JobId) -> bool {
        self.slot_mut(id).is_some_and(|slot| slot.is_over())
    }

    /// Lets `with` see the outcome of a job that is over, and forgets the job.
    pub(crate) fn finish<T>(
        &mut self,
        id: JobId,
        with: impl FnOnce(&Outcome<'_>) -> T,
    ) -> Option<T> {
        let slot = self.slot_mut(id)?;
        if !slot.is_over() {
            return None;
        }
        let told = if slot.worker.has_finished() {
            slot.worker.with_outcome(with)
        } else {
            let text = "the worker was ended before it was done";
            with(&Outcome::Failed(Failure::new(
                FailureKind::Other,
                Stage::File,
                text,
            )))
        };
        if let Some(job) = &mut slot.job {
            job.caller = None;
        }
        self.let_go(id.place);
        Some(told)
    }

    /// A worker has something to say.
    pub(crate) fn bell_rang(&mut self, place: u32) {
        let Some(slot) = self.place_mut(place) else {
            return;
        };
        slot.worker.ours.hear();
        let caller = slot.job.as_ref().and_then(|job| job.caller);
        match caller {
            Some(caller) => self.wake(caller.link),
            None => self.let_go(place),
        }
    }

    /// A child has ended; it may be a worker.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        let position = self
            .places
            .iter()
            .position(|slot| slot.as_ref().is_some_and(|slot| slot.worker.pid == pid));
        let Some(place) = position.and_then(|place| u32::try_from(place).ok()) else {
            return;
        };
        let Some(slot) = self.place_mut(place) else {
            return;
        };
        let job = slot.job.as_mut();
        match job.and_then(|job| Some((job.caller?, &mut job.is_dead))) {
            Some((caller, is_dead)) => {
                *is_dead = true;
                self.wake(caller.link);
            }
            None => self.forget(place),
        }
    }

    /// Wakes the workers that wait for something that has happened.
    pub(crate) fn tell_workers(&mut self) {
        for slot in self.places.iter_mut().flatten() {
            slot.worker.tell();
        }
    }

    /// Ends all workers, each as soon as its job has stopped.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
        for place in 0..self.places.len() {
            let Ok(place) = u32::try_from(place) else {
                return;
            };
            let Some(slot) = self.place_mut(place) else {
                continue;
            };
            match &slot.job {
                Some(_) => slot.worker.cancel(),
                None => self.dismiss(place),
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

    fn wake(&mut self, link: LinkId) {
        if !self.awake.contains(&link) {
            self.awake.push(link);
        }
    }

    fn idle_place(&self) -> Option<u32> {
        let idle = |slot: &Option<Place>| slot.as_ref().is_some_and(|slot| slot.job.is_none());
        u32::try_from(self.places.iter().position(idle)?).ok()
    }

    fn hire(&mut self, poller: &Poller) -> Result<u32, Failure<'static>> {
        let place = match self.places.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.places.len() < MAX_WORKERS => {
                self.places.push(None);
                self.places.len().saturating_sub(1)
            }
            None => {
                let text = "too much work on files at once";
                return Err(Failure::new(FailureKind::Limit, Stage::File, text));
            }
        };
        let id = u32::try_from(place).map_err(|_| no_worker())?;
        let worker = Worker::start().map_err(|errno| {
            let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
            Failure::from_errno(number, Stage::File, "starting a worker")
        })?;
        if poller.watch(&worker.ours, Event::Worker(id)).is_err() {
            worker.kill();
            return Err(no_worker());
        }
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Some(Place { worker, job: None });
        }
        Ok(id)
    }

    /// A job that nobody waits for is over when its worker says so.
    fn let_go(&mut self, place: u32) {
        let Some(slot) = self.place_mut(place) else {
            return;
        };
        let Some(job) = slot.job.as_ref().filter(|job| job.caller.is_none()) else {
            return;
        };
        if job.is_dead {
            self.forget(place);
            return;
        }
        if !slot.worker.has_finished() {
            return;
        }
        slot.job = None;
        slot.worker.rest();
        let idle = self.places.iter().flatten();
        let idle = idle.filter(|slot| slot.job.is_none()).count();
        if self.is_closing || idle > MAX_IDLE {
            self.dismiss(place);
        }
    }

    /// Ends a worker that has nothing to do.
    fn dismiss(&mut self, place: u32) {
        if let Some(slot) = self.place_mut(place) {
            slot.worker.kill();
            self.forget(place);
        }
    }

    fn forget(&mut self, place: u32) {
        if let Ok(place) = usize::try_from(place)
            && let Some(slot) = self.places.get_mut(place)
        {
            *slot = None;
        }
    }

    fn place_mut(&mut self, place: u32) -> Option<&mut Place> {
        self.places.get_mut(usize::try_from(place).ok()?)?.as_mut()
    }

    fn slot_mut(&mut self, id: JobId) -> Option<&mut Place> {
        self.place_mut(id.place)
            .filter(|slot| slot.job.as_ref().is_some_and(|job| job.number == id.number))
    }

    fn worker_mut(&mut self, id: JobId) -> Option<&mut Worker> {
        self.slot_mut(id).map(|slot| &mut slot.worker)
    }
}

fn no_worker() -> Failure<'static> {
    Failure::new(FailureKind::Other, Stage::File, "there is no worker")
}
