mod leaving;
mod left;

use alloc::{boxed::Box, vec::Vec};

use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{CgroupLimits, Channel, Failure, FailureKind, Lifetime, Selector, Stage, Start};

use super::{
    Asked, Caller, Process, ProcessId, Role, Spawner, identity::is_tag, spawn::number,
    streams::Outputs,
};
use crate::{
    cgroup::{Cgroup, Cgroups},
    deadlines::{Deadlines, Purpose},
    event::{Event, Poller},
    kernel_log::KernelLog,
    link::LinkId,
    sys::ResourceLimit,
};
use left::LeftBehind;

/// All processes that the agent started and has not yet forgotten.
pub(crate) struct Processes {
    /// Sorted by id. A vector keeps its memory, where a tree would get and
    /// return it with every process.
    table: Vec<(ProcessId, Box<Process>)>,
    left: LeftBehind,
    last: ProcessId,
    pub(super) spawner: Spawner,
    cgroups: Option<Cgroups>,
    kernel_log: Option<KernelLog>,
    pub(super) deadlines: Deadlines,
    /// How long a foreground process without its link waits to be resumed.
    resume_grace_ms: u64,
    /// Links whose streams may have something to say.
    awake: Vec<LinkId>,
    /// Processes whose pipes have more than one turn allows to read.
    busy: Vec<ProcessId>,
    /// Terminals that had no room for all that was typed.
    full: Vec<ProcessId>,
    /// Processes of services to which something has happened.
    looked_after: Vec<ProcessId>,
}

/// More processes than this are refused, long before memory runs out.
const MAX_PROCESSES: usize = 4096;

/// How often an output is read before others have their turn.
const READS_PER_TURN: usize = 4;

impl Processes {
    /// `descriptors` is the limit of descriptors of programs.
    pub(crate) fn new(
        cgroups: Option<Cgroups>,
        descriptors: ResourceLimit,
        resume_grace_ms: u64,
    ) -> Result<Self, Errno> {
        Ok(Self {
            table: Vec::new(),
            left: LeftBehind::default(),
            last: ProcessId(0),
            spawner: Spawner::new(descriptors)?,
            // Without cgroups there is no guest, whose kernel it would be.
            kernel_log: cgroups.as_ref().and_then(|_| KernelLog::open()),
            cgroups,
            deadlines: Deadlines::default(),
            resume_grace_ms,
            awake: Vec::new(),
            busy: Vec::new(),
            full: Vec::new(),
            looked_after: Vec::new(),
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
            .filter(|(_, process)| !process.ending.abandoned && process.role == Role::Ordinary)
            .find(|(_, process)| process.identity.ticket == ticket)
            .map(|(id, _)| id)
    }

    /// All processes that hosts may name, in the order of their ids.
    pub(super) fn known(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.iter().filter(|(_, process)| process.is_known())
    }

    /// The same, with commands that have ended and left processes behind, where
    /// hosts may not name them otherwise.
    pub(super) fn known_or_left(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        let mut known = self
            .iter()
            .filter(|(_, process)| process.is_known() || process.has_left_some())
            .peekable();
        let mut left = self.left.iter().peekable();
        core::iter::from_fn(move || match (known.peek(), left.peek()) {
            (Some((id, _)), Some((other, _))) if other < id => left.next(),
            (Some(_), _) => known.next(),
            (None, _) => left.next(),
        })
    }

    fn iter(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.table.iter().map(|(id, process)| (*id, &**process))
    }

    pub(super) fn start(
        &mut self,
        start: &Start<'_>,
        owner: Option<Caller>,
        window: u32,
        outputs: Outputs,
        poller: &Poller,
    ) -> Result<ProcessId, Failure<'static>> {
        self.check_tag(start.tag, None)?;
        let mut process = self.launch(start, outputs)?;
        if start.lifetime == Lifetime::Foreground {
            process.owner = owner;
            process.feeder = owner;
            process.stdout.hold(0, window);
            process.stderr.hold(0, window);
        }
        let started = process.started;
        let id = self.insert(process, poller);
        if start.timeout_ms > 0 {
            let end = started.after_ms(start.timeout_ms);
            self.deadlines.add(end, id, Purpose::Timeout);
        }
        Ok(id)
    }

    /// Begins to start a process that a service wants, whose outputs both go to
    /// `output`. Its tag is the caller's choice.
    pub(crate) fn start_for_service(
        &mut self,
        start: &Start<'_>,
        role: Role,
        output: OwnedFd,
        poller: &Poller,
    ) -> Result<ProcessId, Failure<'static>> {
        let mut process = self.launch(start, Outputs::Given(output))?;
        process.role = role;
        Ok(self.insert(process, poller))
    }

    /// An output that nobody reads.
    pub(crate) fn nowhere(&self) -> Result<OwnedFd, Errno> {
        self.spawner.nowhere()
    }

    fn launch(&mut self, start: &Start<'_>, outputs: Outputs) -> Result<Process, Failure<'static>> {
        if self.table.len() >= MAX_PROCESSES {
            let text = "too many processes";
            return Err(Failure::new(FailureKind::Limit, Stage::Request, text));
        }
        let cgroup = self.cgroup_for(&start.limits)?;
        self.spawner
            .start(start, cgroup, outputs)
            .map_err(|(failure, cgroup)| {
                // A child that failed has exited.
                if let Some(cgroup) = cgroup {
                    self.take_back(cgroup);
                }
                failure
            })
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
            return cgroups.acquire().map(Some).map_err(|errno| {
                Failure::from_errno(number(errno), Stage::Cgroup, "no cgroup can be made")
            });
        }
        cgroups.acquire_limited(limits).map(Some).map_err(|errno| {
            Failure::from_errno(number(errno), Stage::Limits, "the limits cannot be set")
        })
    }

    /// Begins to watch the pipes of a new process.
    pub(super) fn watch(&mut self, id: ProcessId, poller: &Poller) -> Result<(), Failure<'static>> {
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
        // Who writes has executed its program.
        self.look_at_launch(id);
        let Some(process) = self.get_mut(id) else {
            return;
        };
        process.pipe_is_ready(channel);
        if channel == Channel::Stdin {
            self.typed(id);
        }
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.is_paced() {
            self.wake(id);
        } else {
            self.read_on(id);
        }
    }

    /// Something was typed on a terminal, or another input was written.
    pub(crate) fn typed(&mut self, id: ProcessId) {
        let is_full = self
            .get_mut(id)
            .is_some_and(|process| process.terminal.is_some() && process.has_waiting_input());
        if is_full && !self.full.contains(&id) {
            self.full.push(id);
        }
    }

    /// Has the kernel tell when there is room for what waits to be typed.
    pub(crate) fn watch_full(&mut self, poller: &Poller) {
        for id in core::mem::take(&mut self.full) {
            if let Some(process) = self.get_mut(id)
                && let Some(input) = &process.stdin
            {
                // The kernel has been told of it before, so it cannot fail.
                let _ = poller.watch_room(input, Event::Pipe(id, Channel::Stdin));
            }
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
        !self.busy.is_empty() || !self.looked_after.is_empty() || self.is_sweeping()
    }

    /// Gives the processes that want it another turn.
    pub(crate) fn take_turns(&mut self) {
        for id in core::mem::take(&mut self.busy) {
            self.read_on(id);
        }
        if self.is_sweeping() {
            self.sweep();
        }
    }

    /// Has everybody served who watches this process.
    pub(crate) fn wake(&mut self, id: ProcessId) {
        let Some(place) = self.place(id) else {
            return;
        };
        if let Some((_, process)) = self.table.get(place) {
            if process.role.is_looked_after() && !self.looked_after.contains(&id) {
                self.looked_after.push(id);
            }
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

    /// A process of a service to which something has happened.
    pub(crate) fn next_looked_after(&mut self) -> Option<ProcessId> {
        self.looked_after.pop()
    }

    /// A link that wants a turn.
    pub(crate) fn next_awake(&mut self) -> Option<LinkId> {
        self.awake.pop()
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

    fn insert(&mut self, process: Process, poller: &Poller) -> ProcessId {
        let id = ProcessId(self.last.0.wrapping_add(1));
        self.last = id;
        let started = process.started;
        let place = self.table.partition_point(|(other, _)| *other < id);
        self.table.insert(place, (id, Box::new(process)));
        self.watch_launch(id, started, poller);
        id
    }

    fn place(&self, id: ProcessId) -> Option<usize> {
        self.table.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

impl Process {
    fn watch_pipes(&self, id: ProcessId, poller: &Poller) -> Result<(), Errno> {
        if let Some(input) = &self.stdin {
            let event = Event::Pipe(id, Channel::Stdin);
            match self.terminal {
                Some(_) => poller.watch_keyboard(input, event)?,
                None => poller.watch(input, event)?,
            }
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
