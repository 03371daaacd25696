use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};
use vmcell_wire::{Outcome, Request, WireError, files::record};

use super::{INCOMING, OUTGOING};
use crate::{
    sys::{self, Consumer, Producer, SharedRing},
    worker::{self, Bell, Orders},
};

/// A worker, as the agent sees it.
pub(crate) struct Worker {
    pub(super) pid: Pid,
    /// What the job is given.
    incoming: Producer,
    /// What the job gives.
    outgoing: Consumer,
    /// The worker rings it.
    pub(super) ours: Bell,
    /// The agent rings it.
    workers: Bell,
    orders: Orders,
    /// How many bytes of the input are the request.
    request: u64,
    /// The worker was not told of bytes.
    untold_bytes: bool,
    /// The worker was not told of something else.
    untold: bool,
}

impl Worker {
    pub(super) fn start() -> Result<Self, Errno> {
        let incoming = SharedRing::new(INCOMING)?;
        let outgoing = SharedRing::new(OUTGOING)?;
        let (workers, for_worker) = Bell::new(false)?;
        let (ours, for_us) = Bell::new(true)?;
        // Both processes have the rings from here on, each its own ends.
        let mut rings = Some((incoming, outgoing));
        let pid = sys::fork([for_worker, for_us], |bells| {
            if let Some((incoming, outgoing)) = rings.take() {
                worker::run(incoming.into_consumer(), outgoing.into_producer(), bells);
            }
        })?;
        let (incoming, outgoing) = rings.ok_or(Errno::INVAL)?;
        Ok(Self {
            pid,
            incoming: incoming.into_producer(),
            outgoing: outgoing.into_consumer(),
            ours,
            workers,
            orders: Orders::default(),
            request: 0,
            untold_bytes: false,
            untold: false,
        })
    }

    /// Gives an idle worker a job.
    pub(super) fn begin(&mut self, request: &Request<'_>) -> Result<(), WireError> {
        let mut message = alloc::vec::Vec::new();
        record::encode(&mut message, request)?;
        self.incoming.reset();
        self.outgoing.reset();
        self.give(&message);
        // What follows begins on a page, so that it can go straight to a disk.
        while !self.incoming.written().is_multiple_of(worker::PAGE) {
            self.give(&[0]);
        }
        self.request = self.incoming.written();
        let job = self.orders.job.wrapping_add(1) & Orders::MAX_JOB;
        self.order(Orders {
            job,
            ..Orders::default()
        });
        self.tell();
        Ok(())
    }

    /// Adds to the job's input. There is room for what a host may send.
    pub(super) fn give(&mut self, mut bytes: &[u8]) {
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
        self.untold_bytes = true;
    }

    pub(super) fn end_input(&mut self) {
        self.order(Orders {
            ended: true,
            ..self.orders
        });
    }

    pub(super) fn cancel(&mut self) {
        self.order(Orders {
            cancelled: true,
            ..self.orders
        });
        self.tell();
    }

    fn order(&mut self, orders: Orders) {
        self.orders = orders;
        self.incoming.set_word(orders.to_word());
        self.untold = true;
    }

    /// How many bytes of the input, without the request, need no more room.
    pub(super) fn consumed(&self) -> u64 {
        // The last few are freed with those that follow them.
        self.incoming.freed().saturating_sub(self.request)
    }

    /// Whether the job has an outcome.
    pub(super) fn has_finished(&self) -> bool {
        self.outgoing.word() == self.orders.job
    }

    /// The end of the output, as far as there is one yet.
    pub(super) fn output_end(&self) -> u64 {
        // Where the outcome begins is marked before the end moves behind it.
        let end = self.outgoing.end();
        end.min(self.outgoing.mark())
    }

    pub(super) fn output(&mut self) -> &mut Consumer {
        &mut self.outgoing
    }

    /// Output before `offset` is on its way.
    pub(super) fn sent(&mut self, offset: u64) {
        if offset <= self.outgoing.taken() {
            return;
        }
        self.outgoing.take_until(offset);
        let waiting = self.outgoing.end().saturating_sub(offset);
        // A worker that waits for room shall find some that is worth it.
        if waiting.saturating_mul(2) <= u64::try_from(OUTGOING).unwrap_or(u64::MAX) {
            self.untold = true;
        }
    }

    /// Lets `with` see the outcome of a job that has finished. One that was
    /// cancelled has none: it is done.
    pub(super) fn with_outcome<T>(&self, with: impl FnOnce(&Outcome<'_>) -> T) -> T {
        let mut reader = record::Reader::new();
        let mut offset = self.outgoing.mark();
        // It is in two pieces where the ring begins anew.
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

    /// Wakes the worker if it waits for something that has happened.
    pub(super) fn tell(&mut self) {
        let bytes = core::mem::take(&mut self.untold_bytes);
        let anything = core::mem::take(&mut self.untold);
        if (bytes || anything) && self.incoming.is_awaited(anything) {
            self.workers.ring();
        }
    }

    /// Ends a worker that has not been reaped.
    pub(super) fn kill(&self) {
        // It can only be gone already.
        let _ = kill_process(self.pid, Signal::KILL);
    }

    /// Its last job is done with: nothing of it takes up memory.
    pub(super) fn rest(&mut self) {
        if self.outgoing.end().max(self.incoming.written()) > LARGE {
            self.outgoing.shrink();
            self.incoming.shrink();
        }
    }
}

/// A job that moved fewer bytes leaves its memory to the next one.
const LARGE: u64 = 64 * 1024;
