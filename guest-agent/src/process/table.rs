use alloc::{boxed::Box, vec::Vec};

use rustix::{io::Errno, process::Pid};
use vmcell_wire::{
    CgroupLimits, Channel, Exit, Failure, FailureKind, Lifetime, Selector, Stage, Start,
};

use super::{
    Asked, Caller, HOLD_MS, Process, ProcessId, Spawner, identity::is_tag, spawn::number,
    terminal::NewTerminal,
};
use crate::{
    cgroup::{Cgroup, Cgroups},
    clock::Moment,
    deadlines::{Deadlines, Purpose},
    event::{Event, Poller},
    link::LinkId,
    sys::{Reaped, reap},
};

/// All processes that the agent started and has not yet forgotten.
pub(crate) struct Processes {
    /// Sorted by id. A vector keeps its memory, where a tree would get and
    /// return it with every process.
    table: Vec<(ProcessId, Box<Process>)>,
    last: ProcessId,
    spawner: Spawner,
    cgroups: Option<Cgroups>,
    deadlines: Deadlines,
    /// How long a foreground process without its link waits to be resumed.
    resume_grace_ms: u64,
    /// Links whose streams may have something to say.
    awake: Vec<LinkId>,
    /// Processes whose pipes have more than one turn allows to read.
    busy: Vec<ProcessId>,
}

/// More processes than this are refused, long before memory runs out.
const MAX_PROCESSES: usize = 4096;

/// So many background processes that have ended are known; the oldest one is
/// forgotten for a new one.
const MAX_ENDED: usize = 256;

/// So much of what they printed is kept, together; the oldest goes first.
const MAX_ENDED_BYTES: usize = 32 * 1024 * 1024;

/// How often an output is read before others have their turn.
const READS_PER_TURN: usize = 4;

impl Processes {
    pub(crate) fn new(cgroups: Option<Cgroups>, resume_grace_ms: u64) -> Result<Self, Errno> {
        Ok(Self {
            table: Vec::new(),
            last: ProcessId(0),
            spawner: Spawner::new()?,
            cgroups,
            deadlines: Deadlines::default(),
            resume_grace_ms,
            awake: Vec::new(),
            busy: Vec::new(),
        })
    }

    pub(crate) fn get_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        let place = self.place(id)?;
        self.table.get_mut(place).map(|(_, process)| &mut **process)
    }

    /// The process that a host names.
    pub(super) fn find(&self, selector: Selector<'_>) -> Option<ProcessId> {
        let mut known = self.iter().filter(|(_, process)| process.is_known());
        match selector {
            Selector::Id(id) => known.find(|(other, _)| other.0 == id),
            Selector::Pid(pid) => known
                .filter(|(_, process)| process.pid() == pid)
                .min_by_key(|(_, process)| process.has_ended()),
            Selector::Tag(tag) => known.find(|(_, process)| process.identity.tag() == tag),
        }
        .map(|(id, _)| id)
    }

    /// The process that was started with this ticket.
    pub(super) fn find_ticket(&self, ticket: u64) -> Option<ProcessId> {
        self.iter()
            .filter(|(_, process)| !process.ending.abandoned)
            .find(|(_, process)| process.identity.ticket == ticket)
            .map(|(id, _)| id)
    }

    /// All processes that hosts may name, in the order of their ids.
    pub(super) fn known(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.iter().filter(|(_, process)| process.is_known())
    }

    fn iter(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.table.iter().map(|(id, process)| (*id, &**process))
    }

    pub(super) fn start(
        &mut self,
        start: &Start<'_>,
        owner: Option<Caller>,
        window: u32,
        terminal: Option<NewTerminal>,
    ) -> Result<ProcessId, Failure<'static>> {
        self.check_tag(start.tag, None)?;
        if self.table.len() >= MAX_PROCESSES {
            let text = "too many processes";
            return Err(Failure::new(FailureKind::Limit, Stage::Request, text));
        }
        let cgroup = self.cgroup_for(&start.limits)?;
        let mut process = match self.spawner.start(start, cgroup, terminal) {
            Ok(process) => process,
            Err((failure, cgroup)) => {
                if let Some(cgroup) = cgroup {
                    let is_empty = cgroup.is_empty();
                    self.take_back(cgroup, is_empty);
                }
                return Err(failure);
            }
        };
        if start.lifetime == Lifetime::Foreground {
            process.owner = owner;
            process.feeder = owner;
            process.stdout.hold(0, window);
            process.stderr.hold(0, window);
        }
        let id = ProcessId(self.last.0.wrapping_add(1));
        if start.timeout_ms > 0 {
            let end = process.started.after_ms(start.timeout_ms);
            self.deadlines.add(end, id, Purpose::Timeout);
        }
        self.insert(id, process);
        Ok(id)
    }

    /// Gives a process another tag.
    pub(super) fn rename(&mut self, id: ProcessId, tag: &str) -> Result<(), Failure<'static>> {
        self.check_tag(tag, Some(id))?;
        if let Some(process) = self.get_mut(id) {
            process.identity.rename(tag);
        }
        Ok(())
    }

    /// Whether a new process, or this one, may have a tag.
    fn check_tag(&self, tag: &str, id: Option<ProcessId>) -> Result<(), Failure<'static>> {
        if !is_tag(tag) {
            let text = "a tag is 1 to 64 of A-Z a-z 0-9 . _ -";
            return Err(Failure::new(FailureKind::Invalid, Stage::Request, text));
        }
        let holder = self.find(Selector::Tag(tag));
        if holder.is_some() && holder != id {
            let text = "a process has this tag";
            return Err(Failure::new(FailureKind::Conflict, Stage::Request, text));
        }
        Ok(())
    }

    fn cgroup_for(&mut self, limits: &CgroupLimits) -> Result<Option<Cgroup>, Failure<'static>> {
        let unlimited = *limits == CgroupLimits::default();
        let Some(cgroups) = &mut self.cgroups else {
            if unlimited {
                return Ok(None);
            }
            let text = "the agent runs without cgroups";
            return Err(Failure::new(FailureKind::Unsupported, Stage::Limits, text));
        };
        if unlimited {
            return cgroups.take().map(Some).map_err(|errno| {
                Failure::from_errno(number(errno), Stage::Cgroup, "no cgroup can be made")
            });
        }
        cgroups.take_limited(limits).map(Some).map_err(|errno| {
            Failure::from_errno(number(errno), Stage::Limits, "the limits cannot be set")
        })
    }

    /// Begins to watch the pipes of a new process, unless there is nothing more
    /// to come.
    pub(super) fn watch(&mut self, id: ProcessId, poller: &Poller) -> Result<(), Failure<'static>> {
        let Some(process) = self.get_mut(id) else {
            return Ok(());
        };
        if process.has_ended() {
            // What a short command printed is there.
            self.collect(id);
        }
        let Some(process) = self.get_mut(id) else {
            return Ok(());
        };
        process.watch_pipes(id, poller).map_err(|errno| {
            self.abandon(id);
            let text = "the pipes cannot be watched";
            Failure::from_errno(number(errno), Stage::Pipes, text)
        })
    }

    /// The kernel says that a pipe can be used again.
    pub(crate) fn pipe_is_ready(&mut self, id: ProcessId, channel: Channel) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        process.pipe_is_ready(channel);
        if process.is_paced() {
            self.wake(id);
        } else {
            self.read_on(id);
        }
    }

    /// Reads what a process wrote, as far as one turn allows.
    fn collect(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let mut more = false;
        for output in [&mut process.stdout, &mut process.stderr] {
            for _ in 0..READS_PER_TURN {
                output.collect();
            }
            more |= output.can_read();
        }
        if more && !process.is_paced() {
            self.read_soon(id);
        }
    }

    /// Gives a process another turn.
    pub(crate) fn read_soon(&mut self, id: ProcessId) {
        if !self.busy.contains(&id) {
            self.busy.push(id);
        }
    }

    /// Nobody paces a process any more: reads what waits.
    pub(super) fn read_on(&mut self, id: ProcessId) {
        self.collect(id);
        self.settle(id);
        self.wake(id);
    }

    /// Whether some process wants another turn.
    pub(crate) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// Gives the processes that want it another turn.
    pub(crate) fn take_turns(&mut self) {
        for id in core::mem::take(&mut self.busy) {
            self.read_on(id);
        }
    }

    /// Has everybody served who watches this process.
    pub(crate) fn wake(&mut self, id: ProcessId) {
        let Some(place) = self.place(id) else {
            return;
        };
        if let Some((_, process)) = self.table.get(place) {
            for caller in process.callers() {
                if !self.awake.contains(&caller.link) {
                    self.awake.push(caller.link);
                }
            }
        }
    }

    pub(crate) fn is_awake(&self) -> bool {
        !self.awake.is_empty()
    }

    /// A link that wants a turn.
    pub(crate) fn next_awake(&mut self) -> Option<LinkId> {
        self.awake.pop()
    }

    /// Ends a process and its descendants. It is reported as usual.
    pub(super) fn kill(&mut self, id: ProcessId, asked: Asked) {
        if let Some(process) = self.get_mut(id) {
            process.kill(asked);
            let hold = Moment::now().after_ms(HOLD_MS);
            self.deadlines.add(hold, id, Purpose::Hold);
        }
    }

    /// A stream does not want any more of a process. Answers whether that ends
    /// the process, so that the stream will hear of its exit.
    pub(crate) fn cancel(&mut self, id: ProcessId, caller: Caller) -> bool {
        let owns = self
            .get_mut(id)
            .is_some_and(|process| process.owner == Some(caller));
        if owns {
            self.end_unread(id);
        } else {
            self.leave(id, caller);
        }
        owns
    }

    /// A stream is gone.
    pub(crate) fn leave(&mut self, id: ProcessId, caller: Caller) {
        let grace = self.resume_grace_ms;
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.feeder == Some(caller) {
            process.feeder = None;
        }
        process.observers.retain(|other| *other != caller);
        let reads_on = process.left_terminal(caller);
        if process.owner == Some(caller) {
            process.owner = None;
            let end = Moment::now().after_ms(grace);
            self.deadlines.add(end, id, Purpose::Resume);
            // What it wrote and nobody has read yet is not told again.
            self.busy.push(id);
        } else if reads_on {
            self.read_soon(id);
        }
        self.drop_if_abandoned(id);
    }

    /// The owner knows how the process ended.
    pub(crate) fn acknowledge(&mut self, id: ProcessId, caller: Caller) {
        if let Some(process) = self.get_mut(id)
            && process.owner == Some(caller)
        {
            process.owner = None;
            process.ending.abandoned = true;
            self.drop_if_abandoned(id);
        }
    }

    /// Ends a process that nobody will hear of.
    fn abandon(&mut self, id: ProcessId) {
        self.end_unread(id);
        if let Some(process) = self.get_mut(id) {
            process.owner = None;
            process.ending.abandoned = true;
        }
        self.drop_if_abandoned(id);
    }

    /// Ends a process whose owner does not read its outputs any more.
    fn end_unread(&mut self, id: ProcessId) {
        self.kill(id, Asked::Host);
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.observers.is_empty() {
            process.close_pipes();
        } else {
            // Others look on, for whom the agent reads.
            process.stop_pacing();
            self.read_on(id);
        }
    }

    /// An owner was found for a process.
    pub(super) fn resumed(&mut self, id: ProcessId) {
        self.deadlines.remove(id, Purpose::Resume);
    }

    /// How a process ended, once nothing can change that any more.
    pub(crate) fn settle(&mut self, id: ProcessId) -> Option<Exit> {
        let process = self.get_mut(id)?;
        let known = process.ending.exit();
        if known.is_some() {
            return known;
        }
        let exit = process.settle()?;
        let background = process.lifetime == Lifetime::Background;
        if background {
            process.stdout.finish();
            process.stderr.finish();
        }
        if exit.tree_ended == Some(true)
            && let Some(cgroup) = process.cgroup.take()
        {
            self.take_back(cgroup, true);
        }
        self.deadlines.settle(id);
        if background {
            self.bound_the_ended();
        }
        Some(exit)
    }

    /// How a process ended that was killed, once its descendants are gone too.
    pub(crate) fn killed(&mut self, id: ProcessId) -> Option<Exit> {
        if self.get_mut(id)?.has_ended() && !self.get_mut(id)?.is_paced() {
            self.collect(id);
            self.settle(id);
        }
        let process = self.get_mut(id)?;
        let exit = process.killed()?;
        if exit.tree_ended == Some(true)
            && process.ending.exit().is_some()
            && let Some(cgroup) = process.cgroup.take()
        {
            self.take_back(cgroup, true);
        }
        Some(exit)
    }

    /// The owner was told how a process ended.
    pub(crate) fn told(&mut self, id: ProcessId) {
        if let Some(process) = self.get_mut(id) {
            process.ending.told = true;
        }
    }

    /// Removes a process, whatever it does.
    pub(super) fn forget(&mut self, id: ProcessId) {
        // Who still watches it shall hear that it is gone.
        self.wake(id);
        let Some(place) = self.place(id) else {
            return;
        };
        let (_, mut process) = self.table.remove(place);
        self.deadlines.forget(id);
        if let Some(cgroup) = process.cgroup.take() {
            let is_empty = cgroup.is_empty();
            self.take_back(cgroup, is_empty);
        }
    }

    fn take_back(&mut self, cgroup: Cgroup, is_empty: bool) {
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.give_back(cgroup, is_empty);
        }
    }

    /// Keeps what ended background processes cost within bounds.
    fn bound_the_ended(&mut self) {
        let (mut count, mut bytes) = (0usize, 0usize);
        let mut oldest = None;
        for (id, process) in self.table.iter_mut().rev() {
            if process.lifetime != Lifetime::Background || process.ending.exit().is_none() {
                continue;
            }
            count = count.saturating_add(1);
            for output in [&mut process.stdout, &mut process.stderr] {
                bytes = bytes.saturating_add(output.ring().kept());
                if bytes > MAX_ENDED_BYTES && !output.holds_something() {
                    output.clear();
                }
            }
            // One that somebody waits for goes last.
            if oldest.is_none() || !process.stdout.holds_something() {
                oldest = Some(*id);
            }
        }
        if let Some(oldest) = oldest.filter(|_| count > MAX_ENDED) {
            self.forget(oldest);
        }
    }

    /// Collects every child that has ended, ours or an orphan, and wakes those
    /// who may have something to say about it. Answers whether any child is
    /// left.
    pub(crate) fn reap_all(&mut self, mut reaped_too: impl FnMut(Pid)) -> bool {
        let children_left = loop {
            match reap() {
                Ok(Some(reaped)) => {
                    reaped_too(reaped.pid);
                    self.leader_ended(reaped);
                }
                Ok(None) => break true,
                Err(Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.sweep();
        }
        // From the back, because some may be removed.
        for place in (0..self.table.len()).rev() {
            let Some((id, process)) = self.table.get(place) else {
                continue;
            };
            let (id, paced) = (*id, process.is_paced());
            let settled = process.ending.exit().is_some() && process.cgroup.is_none();
            if !process.has_ended() || settled {
                continue;
            }
            if paced {
                self.wake(id);
            } else {
                self.read_on(id);
            }
            self.drop_if_abandoned(id);
        }
        children_left
    }

    /// When a process must be looked at again.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.next()
    }

    /// Acts on the deadlines that have come.
    pub(crate) fn expire(&mut self) {
        if self.deadlines.next().is_none() {
            return;
        }
        let now = Moment::now();
        while let Some((id, purpose)) = self.deadlines.take_due(now) {
            let Some(process) = self.get_mut(id) else {
                continue;
            };
            match purpose {
                Purpose::Hold => {
                    if process.hold_expired() {
                        let hold = now.after_ms(HOLD_MS);
                        self.deadlines.add(hold, id, Purpose::Hold);
                    }
                    self.settle(id);
                }
                Purpose::Timeout => {
                    if !process.has_ended() {
                        self.kill(id, Asked::Timeout);
                    }
                }
                Purpose::Resume => {
                    if process.owner.is_none() && process.lifetime == Lifetime::Foreground {
                        self.abandon(id);
                    }
                }
            }
            self.wake(id);
            self.drop_if_abandoned(id);
        }
    }

    /// Whether [`prepare`](Self::prepare) has been called.
    pub(crate) fn is_prepared(&self) -> bool {
        self.cgroups.as_ref().is_none_or(Cgroups::is_prepared)
    }

    /// Does what somebody would else wait for. For quiet moments.
    pub(crate) fn prepare(&mut self) {
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.prepare();
        }
    }

    /// Ends all processes at once.
    pub(crate) fn kill_all(&mut self) {
        for (_, process) in &mut self.table {
            process.kill(Asked::Host);
        }
    }

    /// Asks all processes to end.
    pub(crate) fn terminate_all(&self) {
        for (_, process) in &self.table {
            process.terminate();
        }
    }

    /// Tells all terminals that they go.
    pub(crate) fn hang_up_all(&self) {
        for (_, process) in &self.table {
            process.hang_up();
        }
    }

    fn insert(&mut self, id: ProcessId, process: Process) {
        self.last = id;
        let place = self.table.partition_point(|(other, _)| *other < id);
        self.table.insert(place, (id, Box::new(process)));
    }

    fn leader_ended(&mut self, reaped: Reaped) {
        let leader = self
            .table
            .iter_mut()
            .find(|(_, process)| process.pid == reaped.pid && !process.has_ended());
        if let Some((id, process)) = leader {
            process.leader_ended(reaped);
            let id = *id;
            // Its descendants have their time from now on, even if it was killed
            // a while ago.
            self.deadlines.remove(id, Purpose::Hold);
            let hold = Moment::now().after_ms(HOLD_MS);
            self.deadlines.add(hold, id, Purpose::Hold);
        }
    }

    fn place(&self, id: ProcessId) -> Option<usize> {
        self.table.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// Forgets a process that nobody will ask for, when it is over and nobody
    /// watches it.
    fn drop_if_abandoned(&mut self, id: ProcessId) {
        let nobody = self
            .get_mut(id)
            .is_some_and(|process| process.ending.abandoned && process.observers.is_empty());
        if nobody && self.settle(id).is_some() {
            self.forget(id);
        }
    }
}

impl Process {
    fn watch_pipes(&self, id: ProcessId, poller: &Poller) -> Result<(), Errno> {
        if let Some(input) = &self.stdin {
            poller.watch(input, Event::Pipe(id, Channel::Stdin))?;
        }
        for (channel, output) in [
            (Channel::Stdout, &self.stdout),
            (Channel::Stderr, &self.stderr),
        ] {
            if let Some(pipe) = output.pipe() {
                poller.watch(pipe, Event::Pipe(id, channel))?;
            }
        }
        Ok(())
    }
}
