use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};
use vmcell_wire::{Outcome, Request, WireError, files::record};

use super::{INPUT_CAPACITY, OUTPUT_CAPACITY};
use crate::{
    files,
    sys::{self, Consumer, Producer, SharedRing},
    worker::{self, ControlWord, Wakeup},
};

/// The agent's handle of a worker process and of the job that it runs.
pub(crate) struct WorkerHandle {
    pub(super) pid: Pid,
    /// The job's input.
    incoming: Producer,
    /// The job's output.
    outgoing: Consumer,
    /// Notified by the worker.
    pub(super) agent_wakeup: Wakeup,
    /// Notified by the agent.
    worker_wakeup: Wakeup,
    control: ControlWord,
    /// How many bytes of the input are the request.
    request_length: u64,
    /// Input was added since the last notification.
    has_new_bytes: bool,
    /// Something else has changed since: the control word, or room for output.
    has_other_news: bool,
}

impl WorkerHandle {
    pub(super) fn start() -> Result<Self, Errno> {
        let incoming = SharedRing::new(INPUT_CAPACITY)?;
        let outgoing = SharedRing::new(OUTPUT_CAPACITY)?;
        let (worker_wakeup, for_worker) = Wakeup::new(false)?;
        let (agent_wakeup, for_us) = Wakeup::new(true)?;
        // Both processes have the rings from here on, each its own ends.
        let mut rings = Some((incoming, outgoing));
        let pid = sys::fork([for_worker, for_us], |wakeups| {
            if let Some((incoming, outgoing)) = rings.take() {
                files::clear_umask();
                let (incoming, outgoing) = (incoming.into_consumer(), outgoing.into_producer());
                worker::run(incoming, outgoing, wakeups, files::perform);
            }
        })?;
        let rings = rings.ok_or(Errno::INVAL)?;
        Ok(Self::new(pid, rings, agent_wakeup, worker_wakeup))
    }

    /// Creates the handle of a worker that has the other ends of the rings, for its input
    /// and its output.
    pub(super) fn new(
        pid: Pid,
        (incoming, outgoing): (SharedRing, SharedRing),
        agent_wakeup: Wakeup,
        worker_wakeup: Wakeup,
    ) -> Self {
        Self {
            pid,
            incoming: incoming.into_producer(),
            outgoing: outgoing.into_consumer(),
            agent_wakeup,
            worker_wakeup,
            control: ControlWord::default(),
            request_length: 0,
            has_new_bytes: false,
            has_other_news: false,
        }
    }

    /// Gives an idle worker a job.
    pub(super) fn begin(&mut self, request: &Request<'_>) -> Result<(), WireError> {
        let mut message = alloc::vec::Vec::new();
        record::encode(&mut message, request)?;
        self.incoming.reset();
        self.outgoing.reset();
        self.add_input(&message);
        // The rest of the input begins on a page, as direct I/O needs.
        while !self.incoming.written().is_multiple_of(worker::PAGE) {
            self.add_input(&[0]);
        }
        self.request_length = self.incoming.written();
        let job = self.control.job.wrapping_add(1) & ControlWord::MAX_JOB;
        self.set_control(ControlWord {
            job,
            ..ControlWord::default()
        });
        self.notify();
        Ok(())
    }

    /// Appends to the job's input. There is room for all that the host's credit
    /// allows.
    pub(super) fn add_input(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.incoming.room();
            let count = room.len().min(bytes.len());
            if count == 0 {
                return;
            }
            let (now, later) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            if let Some(place) = room.get_mut(..count) {
                place.copy_from_slice(now);
            }
            self.incoming.wrote(count);
            bytes = later;
        }
        self.has_new_bytes = true;
    }

    pub(super) fn end_input(&mut self) {
        self.set_control(ControlWord {
            input_ended: true,
            ..self.control
        });
    }

    pub(super) fn cancel(&mut self) {
        self.set_control(ControlWord {
            cancelled: true,
            ..self.control
        });
        self.notify();
    }

    fn set_control(&mut self, control: ControlWord) {
        self.control = control;
        self.incoming.set_word(control.to_bits());
        self.has_other_news = true;
    }

    /// Returns how many bytes of the input, without the request, were read and
    /// freed.
    pub(super) fn consumed(&self) -> u64 {
        // The last few are freed with those that follow them.
        self.incoming.freed().saturating_sub(self.request_length)
    }

    /// Returns whether the job has an outcome.
    pub(super) fn has_finished(&self) -> bool {
        self.outgoing.word() == self.control.job
    }

    /// Returns the offset behind the output so far, without the outcome.
    pub(super) fn output_end(&self) -> u64 {
        // The worker marks the start of the outcome before it writes it.
        let end = self.outgoing.end();
        end.min(self.outgoing.mark())
    }

    pub(super) fn output(&mut self) -> &mut Consumer {
        &mut self.outgoing
    }

    /// Frees the output before `offset`: the link has sent it.
    pub(super) fn sent(&mut self, offset: u64) {
        if offset <= self.outgoing.taken() {
            return;
        }
        self.outgoing.take_until(offset);
        let waiting = self.outgoing.end().saturating_sub(offset);
        // A worker that waits for room is woken only when half of it is free.
        if waiting.saturating_mul(2) <= u64::try_from(OUTPUT_CAPACITY).unwrap_or(u64::MAX) {
            self.has_other_news = true;
        }
    }

    /// Passes the outcome of a finished job to `with`. A cancelled job may have
    /// written none; it counts as done.
    pub(super) fn with_outcome<T>(&self, with: impl FnOnce(&Outcome<'_>) -> T) -> T {
        let mut reader = record::Reader::new();
        let mut offset = self.outgoing.mark();
        // It is in two pieces where the ring wraps.
        for _ in 0..2 {
            let mut piece = self.outgoing.bytes_from(offset);
            offset = offset.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            if let Ok(Some(record::Piece::Message(message))) = reader.next(&mut piece)
                && let Ok(outcome) = record::decode(message)
            {
                return with(&outcome);
            }
        }
        with(&Outcome::Done)
    }

    /// Wakes the worker if it waits for something that has changed since the last
    /// call.
    pub(super) fn notify(&mut self) {
        let bytes = core::mem::take(&mut self.has_new_bytes);
        let anything = core::mem::take(&mut self.has_other_news);
        if (bytes || anything) && self.incoming.is_awaited(anything) {
            self.worker_wakeup.notify();
        }
    }

    /// Kills a worker that has not been reaped.
    pub(super) fn kill(&self) {
        // It fails only if the worker has ended already.
        let _ = kill_process(self.pid, Signal::KILL);
    }

    /// Returns the memory of the last job to the kernel, if that was a large one.
    pub(super) fn release_memory(&mut self) {
        if self.outgoing.end().max(self.incoming.written()) > RELEASE_THRESHOLD {
            self.outgoing.shrink();
            self.incoming.shrink();
        }
    }
}

/// The memory of a job that moved fewer bytes stays for the next one.
const RELEASE_THRESHOLD: u64 = 64 * 1024;
