use alloc::vec::Vec;

use rustix::process::Pid;
use vmcell_wire::{Failure, FailureKind, Outcome, Request, Stage};

use super::worker_handle::WorkerHandle;
use crate::{
    event::{Event, Poller},
    ids::{Caller, JobId, LinkId},
    sys::Consumer,
};

/// All workers and their jobs.
pub(crate) struct Jobs {
    /// The index is the worker's id.
    slots: Vec<Option<Slot>>,
    /// The number of the job that was begun last.
    last: u32,
    /// Links whose streams may have something to send.
    links_to_serve: Vec<LinkId>,
    /// A worker is ended as soon as it is idle.
    is_closing: bool,
}

struct Slot {
    worker: WorkerHandle,
    /// `None` while the worker is idle.
    job: Option<Job>,
}

struct Job {
    number: u32,
    /// The stream that gets the outcome; `None` if nobody waits for it any more.
    caller: Option<Caller>,
    worker_died: bool,
}

impl Slot {
    fn is_over(&self) -> bool {
        self.worker.has_finished() || self.job.as_ref().is_some_and(|job| job.worker_died)
    }
}

/// How many jobs may run at once; more are rejected. Hosts queue their jobs long
/// before that.
const MAX_WORKERS: usize = 96;

/// How many idle workers are kept.
const MAX_IDLE: usize = 2;

impl Jobs {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            last: 0,
            links_to_serve: Vec::new(),
            is_closing: false,
        }
    }

    /// Starts a job on an idle worker, or on a new one.
    pub(crate) fn begin(
        &mut self,
        request: &Request<'_>,
        caller: Caller,
        poller: &Poller,
    ) -> Result<JobId, Failure<'static>> {
        let index = match self.idle_slot() {
            Some(index) => index,
            None => self.start_worker(poller)?,
        };
        self.last = self.last.wrapping_add(1);
        let number = self.last;
        let slot = self.slot_mut(index).ok_or_else(no_worker)?;
        slot.worker.begin(request).map_err(|_| {
            let text = "the request is too large";
            Failure::new(FailureKind::Limit, Stage::Request, text)
        })?;
        slot.job = Some(Job {
            number,
            caller: Some(caller),
            worker_died: false,
        });
        Ok(JobId {
            slot: index,
            number,
        })
    }

    /// Appends to a job's input.
    pub(crate) fn add_input(&mut self, id: JobId, bytes: &[u8]) {
        if let Some(worker) = self.worker_mut(id) {
            worker.add_input(bytes);
        }
    }

    pub(crate) fn end_input(&mut self, id: JobId) {
        if let Some(worker) = self.worker_mut(id) {
            worker.end_input();
        }
    }

    /// Cancels a job. Its stream gets the outcome when the worker has stopped.
    pub(crate) fn cancel(&mut self, id: JobId) {
        if let Some(worker) = self.worker_mut(id) {
            worker.cancel();
        }
    }

    /// Cancels a job whose stream is gone.
    pub(crate) fn abandon(&mut self, id: JobId) {
        self.cancel(id);
        if let Some(job) = self.job_slot_mut(id).and_then(|slot| slot.job.as_mut()) {
            job.caller = None;
        }
        self.release_if_over(id.slot);
    }

    /// Returns how many bytes of its input a job has read and freed.
    pub(crate) fn consumed(&mut self, id: JobId) -> u64 {
        self.worker_mut(id).map_or(0, |worker| worker.consumed())
    }

    /// Frees the output before `offset`, which the link has sent. Returns the offset
    /// behind the output so far.
    pub(crate) fn sent(&mut self, id: JobId, offset: u64) -> u64 {
        self.worker_mut(id).map_or(offset, |worker| {
            worker.sent(offset);
            worker.output_end()
        })
    }

    pub(crate) fn output(&mut self, id: JobId) -> Option<&mut Consumer> {
        self.worker_mut(id).map(WorkerHandle::output)
    }

    /// Returns whether a job will produce no more output.
    pub(crate) fn is_over(&mut self, id: JobId) -> bool {
        self.job_slot_mut(id).is_some_and(|slot| slot.is_over())
    }

    /// Passes the outcome of a job that is over to `with`, and drops the job.
    pub(crate) fn finish<T>(
        &mut self,
        id: JobId,
        with: impl FnOnce(&Outcome<'_>) -> T,
    ) -> Option<T> {
        let slot = self.job_slot_mut(id)?;
        if !slot.is_over() {
            return None;
        }
        let result = if slot.worker.has_finished() {
            slot.worker.with_outcome(with)
        } else {
            let text = "the worker ended before the job was done";
            with(&Outcome::Failed(Failure::new(
                FailureKind::Other,
                Stage::File,
                text,
            )))
        };
        if let Some(job) = &mut slot.job {
            job.caller = None;
        }
        self.release_if_over(id.slot);
        Some(result)
    }

    /// Handles a notification by a worker.
    pub(crate) fn worker_notified(&mut self, index: u32) {
        let Some(slot) = self.slot_mut(index) else {
            return;
        };
        slot.worker.agent_wakeup.consume();
        let caller = slot.job.as_ref().and_then(|job| job.caller);
        match caller {
            Some(caller) => self.wake(caller.link),
            None => self.release_if_over(index),
        }
    }

    /// Handles the end of a child, which may be a worker.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        let position = self
            .slots
            .iter()
            .position(|slot| slot.as_ref().is_some_and(|slot| slot.worker.pid == pid));
        let Some(index) = position.and_then(|index| u32::try_from(index).ok()) else {
            return;
        };
        let Some(slot) = self.slot_mut(index) else {
            return;
        };
        let job = slot.job.as_mut();
        match job.and_then(|job| Some((job.caller?, &mut job.worker_died))) {
            Some((caller, worker_died)) => {
                *worker_died = true;
                self.wake(caller.link);
            }
            None => self.free_slot(index),
        }
    }

    /// Wakes the workers that wait for something that has changed.
    pub(crate) fn notify_workers(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.worker.notify();
        }
    }

    /// Ends all workers, each as soon as its job has stopped.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
        for index in 0..self.slots.len() {
            let Ok(index) = u32::try_from(index) else {
                return;
            };
            let Some(slot) = self.slot_mut(index) else {
                continue;
            };
            match &slot.job {
                Some(_) => slot.worker.cancel(),
                None => self.end_worker(index),
            }
        }
    }

    /// Takes a link whose streams may have something to send.
    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        self.links_to_serve.pop()
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        !self.links_to_serve.is_empty()
    }

    fn wake(&mut self, link: LinkId) {
        if !self.links_to_serve.contains(&link) {
            self.links_to_serve.push(link);
        }
    }

    fn idle_slot(&self) -> Option<u32> {
        let idle = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| slot.job.is_none());
        u32::try_from(self.slots.iter().position(idle)?).ok()
    }

    fn start_worker(&mut self, poller: &Poller) -> Result<u32, Failure<'static>> {
        let index = match self.slots.iter().position(Option::is_none) {
            Some(index) => index,
            None if self.slots.len() < MAX_WORKERS => {
                self.slots.push(None);
                self.slots.len().saturating_sub(1)
            }
            None => {
                let text = "too many file operations at once";
                return Err(Failure::new(FailureKind::Limit, Stage::File, text));
            }
        };
        let id = u32::try_from(index).map_err(|_| no_worker())?;
        let worker = WorkerHandle::start().map_err(|errno| {
            let number = u16::try_from(errno.raw_os_error()).unwrap_or(0);
            Failure::from_errno(number, Stage::File, "starting a worker")
        })?;
        poller.add_child(worker.pid);
        if poller
            .watch(&worker.agent_wakeup, Event::Worker(id))
            .is_err()
        {
            worker.kill();
            return Err(no_worker());
        }
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(Slot { worker, job: None });
        }
        Ok(id)
    }

    /// Makes a worker idle, or ends it, if its job is over and nobody waits for it.
    fn release_if_over(&mut self, index: u32) {
        let Some(slot) = self.slot_mut(index) else {
            return;
        };
        let Some(job) = slot.job.as_ref().filter(|job| job.caller.is_none()) else {
            return;
        };
        if job.worker_died {
            self.free_slot(index);
            return;
        }
        if !slot.worker.has_finished() {
            return;
        }
        slot.job = None;
        slot.worker.release_memory();
        let idle = self.slots.iter().flatten();
        let idle = idle.filter(|slot| slot.job.is_none()).count();
        if self.is_closing || idle > MAX_IDLE {
            self.end_worker(index);
        }
    }

    /// Ends an idle worker.
    fn end_worker(&mut self, index: u32) {
        if let Some(slot) = self.slot_mut(index) {
            slot.worker.kill();
            self.free_slot(index);
        }
    }

    fn free_slot(&mut self, index: u32) {
        if let Ok(index) = usize::try_from(index)
            && let Some(slot) = self.slots.get_mut(index)
        {
            *slot = None;
        }
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(index).ok()?)?.as_mut()
    }

    fn job_slot_mut(&mut self, id: JobId) -> Option<&mut Slot> {
        self.slot_mut(id.slot)
            .filter(|slot| slot.job.as_ref().is_some_and(|job| job.number == id.number))
    }

    fn worker_mut(&mut self, id: JobId) -> Option<&mut WorkerHandle> {
        self.job_slot_mut(id).map(|slot| &mut slot.worker)
    }
}

fn no_worker() -> Failure<'static> {
    Failure::new(FailureKind::Other, Stage::File, "no worker is available")
}
