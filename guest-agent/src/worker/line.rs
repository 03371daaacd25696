use alloc::vec::Vec;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
    io::Errno,
};
use vmcell_wire::{
    Outcome,
    files::{
        Answer,
        record::{self, Piece},
    },
};

use super::{Bell, Orders, PAGE, Stop, Trouble};
use crate::sys::{Consumer, Producer};

/// The worker's end of a job: bytes from the host, bytes to the host.
///
/// Whatever waits, waits until the host wants the job no more, and then it is
/// [`Stop::HungUp`]. Work that neither takes nor gives bytes for a while must
/// [`check`](Self::check).
pub(crate) struct Line {
    incoming: Consumer,
    outgoing: Producer,
    /// The agent rings it.
    ours: Bell,
    /// The worker rings it.
    agents: Bell,
    job: u32,
    /// What the agent was not told of: bytes that were taken or given.
    untold: usize,
    /// A message on its way.
    message: Vec<u8>,
}

/// A wait that no bytes from the host end.
const NO_BYTES: u64 = u64::MAX;

/// So many bytes are worth waking the agent for.
const WORTH_A_BELL: usize = 64 * 1024;

impl Line {
    pub(super) fn new(incoming: Consumer, outgoing: Producer, ours: Bell, agents: Bell) -> Self {
        Self {
            incoming,
            outgoing,
            ours,
            agents,
            job: 0,
            untold: 0,
            message: Vec::new(),
        }
    }

    /// Waits for the next job.
    pub(super) fn next_job(&mut self) {
        let last = self.job;
        // That the last one was cancelled is of no matter any more.
        while self.orders().job == last {
            self.sleep_unless(NO_BYTES, |line| line.orders().job != last);
        }
        self.job = self.orders().job;
        self.incoming.was_reset();
        self.outgoing.was_reset();
        self.untold = 0;
    }

    /// Answers the job.
    pub(super) fn finish(&mut self, outcome: &Outcome<'_>) {
        self.outgoing.set_mark();
        self.message.clear();
        // An outcome is far smaller than a record may be.
        let _ = record::encode(&mut self.message, outcome);
        let message = core::mem::take(&mut self.message);
        // Who has hung up does not want to know.
        let _ = self.send(&message);
        self.message = message;
        self.outgoing.set_word(self.job);
        self.agents.ring();
    }

    /// What came from the host and was not taken, in one piece: at least
    /// `least` bytes if the piece can hold them, or all that will come. Empty:
    /// that was all.
    pub(crate) fn arrived(&mut self, least: usize) -> Result<&[u8], Stop> {
        let least = least.max(1);
        let wanted = u64::try_from(least).unwrap_or(u64::MAX);
        let wanted = self.incoming.taken().saturating_add(wanted);
        self.wait_until(wanted, |line| {
            let piece = line.incoming.bytes_from(line.incoming.taken()).len();
            let more = line.incoming.end().saturating_sub(line.incoming.taken());
            let wraps = more > u64::try_from(piece).unwrap_or(u64::MAX);
            piece >= least || wraps || line.orders().ended
        })?;
        Ok(self.incoming.bytes_from(self.incoming.taken()))
    }

    /// Says that `count` bytes of what arrived are of no more use.
    pub(crate) fn take(&mut self, count: usize) {
        let taken = self.incoming.taken();
        let count_64 = u64::try_from(count).unwrap_or(u64::MAX);
        self.incoming.take_until(taken.saturating_add(count_64));
        self.tell(count);
    }

    /// Passes over what fills the page up on which the request ends.
    pub(super) fn begin_on_page(&mut self) {
        let over = self.incoming.taken().rem_euclid(PAGE);
        let fill = PAGE.saturating_sub(over).rem_euclid(PAGE);
        self.take(usize::try_from(fill).unwrap_or(0));
    }

    /// Takes the next record, and lets `with` see it. None: no more will come.
    pub(crate) fn next_record<T>(
        &mut self,
        reader: &mut record::Reader,
        mut with: impl FnMut(Piece<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>, Stop> {
        loop {
            let arrived = self.arrived(1)?;
            if arrived.is_empty() {
                if reader.is_between_records() {
                    return Ok(None);
                }
                let kind = vmcell_wire::FailureKind::Invalid;
                return Err(Trouble::new(kind, "the records end in the middle of one").into());
            }
            let mut input = arrived;
            let before = input.len();
            let result = reader.next(&mut input)?.map(&mut with).transpose();
            let count = before.saturating_sub(input.len());
            self.take(count);
            if let Some(result) = result? {
                return Ok(Some(result));
            }
        }
    }

    /// Memory for what goes to the host, in one piece, never empty.
    pub(crate) fn room(&mut self) -> Result<&mut [u8], Stop> {
        self.room_for(1)
    }

    /// The same with at least `least` bytes, or all up to where the memory
    /// begins anew.
    pub(crate) fn room_for(&mut self, least: usize) -> Result<&mut [u8], Stop> {
        self.wait_until(NO_BYTES, |line| line.outgoing.has_room(least))?;
        Ok(self.outgoing.room())
    }

    /// Gives the first `count` bytes of the room to the host.
    pub(crate) fn fill(&mut self, count: usize) {
        self.outgoing.wrote(count);
        self.tell(count);
    }

    /// Gives a copy of these bytes to the host. It gets them with others, or
    /// when the worker waits, or [hurries](Self::hurry).
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        while !bytes.is_empty() {
            let room = self.room()?;
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            if let Some(place) = room.get_mut(..count) {
                place.copy_from_slice(now);
            }
            self.fill(count);
            bytes = later;
        }
        Ok(())
    }

    /// Gives a message to the host.
    pub(crate) fn record(&mut self, message: &impl serde::Serialize) -> Result<(), Stop> {
        let mut buffer = core::mem::take(&mut self.message);
        buffer.clear();
        let sent = record::encode(&mut buffer, message)
            .map_err(Stop::from)
            .and_then(|()| self.send(&buffer));
        self.message = buffer;
        sent
    }

    /// Gives an answer to the host.
    pub(crate) fn answer(&mut self, answer: &Answer<'_>) -> Result<(), Stop> {
        self.record(answer)
    }

    /// Whether the host still wants the job.
    pub(crate) fn check(&self) -> Result<(), Stop> {
        if self.orders().cancelled {
            return Err(Stop::HungUp);
        }
        Ok(())
    }

    /// What was given goes out now.
    pub(crate) fn hurry(&mut self) {
        if self.untold > 0 {
            self.untold = 0;
            self.agents.ring();
        }
    }

    /// Waits until `descriptor` can be read, or for `milliseconds`. Answers
    /// whether it can be read.
    pub(crate) fn wait_for(
        &mut self,
        descriptor: BorrowedFd<'_>,
        milliseconds: Option<u32>,
    ) -> Result<bool, Stop> {
        self.hurry();
        self.incoming.sleep_until(NO_BYTES);
        let mut outcome = Ok(0);
        let mut readable = false;
        if self.check().is_ok() {
            let timeout = milliseconds.map(|wait| Timespec {
                tv_sec: i64::from(wait.div_euclid(1000)),
                tv_nsec: i64::from(wait.rem_euclid(1000)).saturating_mul(1_000_000),
            });
            let mut both = [
                PollFd::from_borrowed_fd(descriptor, PollFlags::IN),
                PollFd::new(&self.ours, PollFlags::IN),
            ];
            outcome = poll(&mut both, timeout.as_ref());
            let [first, second] = &both;
            readable = !first.revents().is_empty();
            if !second.revents().is_empty() {
                self.ours.hear();
            }
        }
        self.incoming.wake_up();
        self.check()?;
        match outcome {
            Ok(_) | Err(Errno::INTR) => Ok(readable),
            Err(errno) => Err(Trouble::errno(errno, "waiting").into()),
        }
    }

    fn orders(&self) -> Orders {
        Orders::from_word(self.incoming.word())
    }

    fn tell(&mut self, count: usize) {
        self.untold = self.untold.saturating_add(count);
        if self.untold >= WORTH_A_BELL {
            self.hurry();
        }
    }

    /// Waits until it is ready, which bytes may make it: so many have come
    /// then.
    fn wait_until(&mut self, wanted: u64, ready: impl Fn(&Self) -> bool) -> Result<(), Stop> {
        loop {
            self.check()?;
            if ready(self) {
                return Ok(());
            }
            self.sleep_unless(wanted, |line| ready(line) || line.check().is_err());
        }
    }

    fn sleep_unless(&mut self, wanted: u64, ready: impl Fn(&Self) -> bool) {
        self.hurry();
        self.incoming.sleep_until(wanted);
        // The agent may have done it before it knew that we sleep.
        if !ready(self) {
            self.ours.hear();
        }
        self.incoming.wake_up();
    }
}
