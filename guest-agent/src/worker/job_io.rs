use alloc::vec::Vec;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
    io::Errno,
};
use vmcell_wire::{
    Outcome,
    files::{
        FileReply,
        record::{self, Piece},
    },
};

use super::{ControlWord, FileError, JobError, JobResult, PAGE, Wakeup};
use crate::sys::{Consumer, Producer};

/// The input and output of a job: bytes from the host and to the host.
///
/// Every wait fails with [`JobError::Cancelled`] when the host cancels the job.
/// Work that neither reads nor writes for a while must call
/// [`check_cancelled`](Self::check_cancelled).
pub(crate) struct JobIo {
    incoming: Consumer,
    outgoing: Producer,
    /// Notified by the agent.
    own_wakeup: Wakeup,
    /// Notified by the worker.
    agent_wakeup: Wakeup,
    job: u32,
    /// How many bytes were read or written since the agent was notified.
    unannounced: usize,
    /// A buffer for encoding messages.
    message: Vec<u8>,
}

/// An input offset that is never reached: input does not end such a wait.
const NEVER: u64 = u64::MAX;

/// How many bytes are read or written before the agent is notified of them.
const NOTIFY_THRESHOLD: usize = 64 * 1024;

impl JobIo {
    pub(crate) fn new(
        incoming: Consumer,
        outgoing: Producer,
        own_wakeup: Wakeup,
        agent_wakeup: Wakeup,
    ) -> Self {
        Self {
            incoming,
            outgoing,
            own_wakeup,
            agent_wakeup,
            job: 0,
            unannounced: 0,
            message: Vec::new(),
        }
    }

    /// Waits for the next job.
    pub(crate) fn next_job(&mut self) {
        let last = self.job;
        // Unlike the other waits, this one ignores the cancellation of the last job.
        while self.control().job == last {
            self.sleep_unless(NEVER, |io| io.control().job != last);
        }
        self.job = self.control().job;
        self.incoming.was_reset();
        self.outgoing.was_reset();
        self.unannounced = 0;
    }

    /// Ends the job with this outcome.
    pub(crate) fn finish(&mut self, outcome: &Outcome<'_>) {
        self.outgoing.set_mark();
        self.message.clear();
        // An outcome is far smaller than a record may be.
        let _ = record::encode(&mut self.message, outcome);
        let message = core::mem::take(&mut self.message);
        // It fails if the job was cancelled: then the host ignores the outcome.
        let _ = self.send(&message);
        self.message = message;
        self.outgoing.set_word(self.job);
        self.agent_wakeup.notify();
    }

    /// Waits for input, and returns what was not consumed yet, as far as it is
    /// contiguous: at least `least` bytes unless the ring wraps or the input ends
    /// before. An empty slice means the end of the input.
    pub(crate) fn peek_input(&mut self, least: usize) -> JobResult<&[u8]> {
        let least = least.max(1);
        let wanted = u64::try_from(least).unwrap_or(u64::MAX);
        let wanted = self.incoming.taken().saturating_add(wanted);
        self.wait_until(wanted, |io| {
            let piece = io.incoming.bytes_from(io.incoming.taken()).len();
            let more = io.incoming.end().saturating_sub(io.incoming.taken());
            let wraps = more > u64::try_from(piece).unwrap_or(u64::MAX);
            piece >= least || wraps || io.control().input_ended
        })?;
        Ok(self.incoming.bytes_from(self.incoming.taken()))
    }

    /// Marks `count` bytes of the input as read.
    pub(crate) fn consume(&mut self, count: usize) {
        let taken = self.incoming.taken();
        let count_64 = u64::try_from(count).unwrap_or(u64::MAX);
        self.incoming.take_until(taken.saturating_add(count_64));
        self.announce(count);
    }

    /// Skips the padding between the request and the next page.
    pub(crate) fn skip_to_page(&mut self) {
        let used = self.incoming.taken().rem_euclid(PAGE);
        let padding = PAGE.saturating_sub(used).rem_euclid(PAGE);
        self.consume(usize::try_from(padding).unwrap_or(0));
    }

    /// Reads the next record and passes it to `with`. Returns `None` at the end of
    /// the input.
    pub(crate) fn next_record<T>(
        &mut self,
        reader: &mut record::Reader,
        mut with: impl FnMut(Piece<'_>) -> JobResult<T>,
    ) -> JobResult<Option<T>> {
        loop {
            let available = self.peek_input(1)?;
            if available.is_empty() {
                if reader.is_between_records() {
                    return Ok(None);
                }
                let kind = vmcell_wire::FailureKind::Invalid;
                return Err(
                    FileError::new(kind, "the input ends in the middle of a record").into(),
                );
            }
            let mut input = available;
            let before = input.len();
            let result = reader.next(&mut input)?.map(&mut with).transpose();
            let count = before.saturating_sub(input.len());
            self.consume(count);
            if let Some(result) = result? {
                return Ok(Some(result));
            }
        }
    }

    /// Waits for free output space, and returns it as far as it is contiguous. It
    /// is never empty.
    pub(crate) fn room(&mut self) -> JobResult<&mut [u8]> {
        self.room_for(1)
    }

    /// Waits until at least `least` bytes are free. Fewer are returned if the ring
    /// wraps before.
    pub(crate) fn room_for(&mut self, least: usize) -> JobResult<&mut [u8]> {
        self.wait_until(NEVER, |io| io.outgoing.has_room(least))?;
        Ok(self.outgoing.room())
    }

    /// Sends the first `count` bytes of the [room](Self::room) to the host.
    pub(crate) fn wrote(&mut self, count: usize) {
        self.outgoing.wrote(count);
        self.announce(count);
    }

    /// Sends a copy of these bytes to the host. They may be held back until there
    /// are more, the worker waits, or [`flush_now`](Self::flush_now) is called.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> JobResult<()> {
        while !bytes.is_empty() {
            let room = self.room()?;
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            if let Some(place) = room.get_mut(..count) {
                place.copy_from_slice(now);
            }
            self.wrote(count);
            bytes = later;
        }
        Ok(())
    }

    /// Sends a message to the host.
    pub(crate) fn send_record(&mut self, message: &impl serde::Serialize) -> JobResult<()> {
        let mut buffer = core::mem::take(&mut self.message);
        buffer.clear();
        let sent = record::encode(&mut buffer, message)
            .map_err(JobError::from)
            .and_then(|()| self.send(&buffer));
        self.message = buffer;
        sent
    }

    pub(crate) fn send_answer(&mut self, answer: &FileReply<'_>) -> JobResult<()> {
        self.send_record(answer)
    }

    /// Fails if the host has cancelled the job.
    pub(crate) fn check_cancelled(&self) -> JobResult<()> {
        if self.control().cancelled {
            return Err(JobError::Cancelled);
        }
        Ok(())
    }

    /// Notifies the agent now of what was read and written.
    pub(crate) fn flush_now(&mut self) {
        if self.unannounced > 0 {
            self.unannounced = 0;
            self.agent_wakeup.notify();
        }
    }

    /// Waits until `descriptor` is readable, or for `milliseconds`. Returns whether
    /// it is readable.
    pub(crate) fn wait_readable(
        &mut self,
        descriptor: BorrowedFd<'_>,
        milliseconds: Option<u32>,
    ) -> JobResult<bool> {
        self.flush_now();
        self.incoming.sleep_until(NEVER);
        let mut outcome = Ok(0);
        let mut readable = false;
        if self.check_cancelled().is_ok() {
            let timeout = milliseconds.map(|wait| Timespec {
                tv_sec: i64::from(wait.div_euclid(1000)),
                tv_nsec: i64::from(wait.rem_euclid(1000)).saturating_mul(1_000_000),
            });
            let mut both = [
                PollFd::from_borrowed_fd(descriptor, PollFlags::IN),
                PollFd::new(&self.own_wakeup, PollFlags::IN),
            ];
            outcome = poll(&mut both, timeout.as_ref());
            let [first, second] = &both;
            readable = !first.revents().is_empty();
            if !second.revents().is_empty() {
                self.own_wakeup.consume();
            }
        }
        self.incoming.wake_up();
        self.check_cancelled()?;
        match outcome {
            Ok(_) | Err(Errno::INTR) => Ok(readable),
            Err(errno) => Err(FileError::errno(errno, "waiting").into()),
        }
    }

    fn control(&self) -> ControlWord {
        ControlWord::from_bits(self.incoming.word())
    }

    fn announce(&mut self, count: usize) {
        self.unannounced = self.unannounced.saturating_add(count);
        if self.unannounced >= NOTIFY_THRESHOLD {
            self.flush_now();
        }
    }

    /// Waits until `ready` returns true. The agent wakes the worker when the input
    /// reaches the offset `wanted`, or when anything else changes.
    fn wait_until(&mut self, wanted: u64, ready: impl Fn(&Self) -> bool) -> JobResult<()> {
        loop {
            self.check_cancelled()?;
            if ready(self) {
                return Ok(());
            }
            self.sleep_unless(wanted, |io| ready(io) || io.check_cancelled().is_err());
        }
    }

    fn sleep_unless(&mut self, wanted: u64, ready: impl Fn(&Self) -> bool) {
        self.flush_now();
        self.incoming.sleep_until(wanted);
        // The change may have come before the agent could see that we sleep.
        if !ready(self) {
            self.own_wakeup.consume();
        }
        self.incoming.wake_up();
    }
}
