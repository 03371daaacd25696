mod lingering;
mod removal;

use alloc::{boxed::Box, rc::Rc, vec::Vec};

use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{
    CgroupLimits, Channel, Failure, FailureKind, ProcessMode, Selector, Stage, Start,
};

use super::{
    KillReason, Process, Role, SpawnSettings, Spawner, identity::is_tag, spawn::raw_errno,
    streams::Outputs,
};
use crate::{
    cgroup::{Cgroup, Cgroups},
    deadlines::{DeadlineKind, Deadlines},
    event::{Event, Poller},
    ids::{Caller, LinkId, ProcessId},
    kernel_log::KernelLog,
};
use lingering::Lingering;

/// All processes that the agent started and has not removed yet.
pub(crate) struct Processes {
    /// Sorted by id. A vector keeps its memory, where a tree would allocate and
    /// free with every process.
    table: Vec<(ProcessId, Box<Process>)>,
    lingering: Lingering,
    last_id: ProcessId,
    pub(super) spawner: Spawner,
    cgroups: Option<Cgroups>,
    kernel_log: Option<KernelLog>,
    pub(super) deadlines: Deadlines,
    /// How long a foreground process that lost its link waits to be resumed.
    resume_grace_ms: u64,
    /// Links whose streams may have frames to send.
    links_to_serve: Vec<LinkId>,
    /// Processes whose pipes have more to read than one turn allows.
    read_queue: Vec<ProcessId>,
    /// Processes whose terminal did not accept all input.
    full_terminals: Vec<ProcessId>,
    /// Processes of services that have changed.
    supervised: Vec<ProcessId>,
    /// Whether a process may have ended, which
    /// [`settle_ended`](Self::settle_ended) handles.
    may_have_ended: bool,
    /// How many descendants of processes have ended since then.
    ended_orphans: usize,
}

/// The maximum number of processes, reached long before memory runs out.
const MAX_PROCESSES: usize = 4096;

/// The maximum number of reads of an output in one turn.
const READS_PER_TURN: usize = 4;

impl Processes {
    /// Creates the table.
    pub(crate) fn new(
        cgroups: Option<Cgroups>,
        settings: SpawnSettings,
        resume_grace_ms: u64,
    ) -> Result<Self, Errno> {
        Ok(Self {
            table: Vec::new(),
            lingering: Lingering::default(),
            last_id: ProcessId(0),
            spawner: Spawner::new(settings)?,
            // Without cgroups the agent does not run in a guest, and the kernel
            // log is not the guest's.
            kernel_log: cgroups.as_ref().and_then(|_| KernelLog::open()),
            cgroups,
            deadlines: Deadlines::default(),
            resume_grace_ms,
            links_to_serve: Vec::new(),
            read_queue: Vec::new(),
            full_terminals: Vec::new(),
            supervised: Vec::new(),
            may_have_ended: false,
            ended_orphans: 0,
        })
    }

    pub(crate) fn get_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        let index = self.index(id)?;
        self.table.get_mut(index).map(|(_, process)| &mut **process)
    }

    /// Returns the process that a selector names.
    pub(super) fn find(&self, selector: Selector<'_>) -> Option<ProcessId> {
        let mut known = self.iter().filter(|(_, process)| process.is_visible());
        match selector {
            Selector::Id(id) => known.find(|(other, _)| other.0 == id),
            Selector::Pid(pid) => known
                .filter(|(_, process)| process.pid() == pid)
                .min_by_key(|(_, process)| process.has_ended()),
            Selector::Tag(tag) => known.find(|(_, process)| process.identity.tag() == tag),
        }
        .map(|(id, _)| id)
    }

    /// Returns the process that was started with this ticket.
    pub(super) fn find_ticket(&self, ticket: u64) -> Option<ProcessId> {
        self.iter()
            .filter(|(_, process)| !process.termination.abandoned && process.role == Role::Ordinary)
            .find(|(_, process)| process.identity.ticket == ticket)
            .map(|(id, _)| id)
    }

    /// Returns all processes that hosts may name, sorted by id.
    pub(super) fn visible(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.iter().filter(|(_, process)| process.is_visible())
    }

    /// Returns these and the processes that have ended while descendants are
    /// still running, sorted by id.
    pub(super) fn visible_or_lingering(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        let mut known = self
            .iter()
            .filter(|(_, process)| process.is_visible() || process.is_lingering())
            .peekable();
        let mut left = self.lingering.iter().peekable();
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
        if start.mode == ProcessMode::Foreground {
            process.owner = owner;
            process.stdin_writer = owner;
            process.stdout.hold(0, window);
            process.stderr.hold(0, window);
        }
        let started = process.started;
        let id = self.insert(process, poller);
        if start.timeout_ms > 0 {
            let end = started.after_ms(start.timeout_ms);
            self.deadlines.add(end, id, DeadlineKind::Timeout);
        }
        Ok(id)
    }

    /// Begins to start a process for a service, with both outputs going to
    /// `output`. Its tag is not checked.
    pub(crate) fn start_for_service(
        &mut self,
        start: &Start<'_>,
        role: Role,
        output: OwnedFd,
        poller: &Poller,
    ) -> Result<ProcessId, Failure<'static>> {
        let mut process = self.launch(start, Outputs::Provided(output))?;
        process.role = role;
        Ok(self.insert(process, poller))
    }

    /// Returns a descriptor of `/dev/null`.
    pub(crate) fn dev_null(&self) -> Result<OwnedFd, Errno> {
        self.spawner.dev_null()
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
                    self.return_cgroup(cgroup);
                }
                failure
            })
    }

    /// Changes the tag of a process.
    pub(super) fn rename(&mut self, id: ProcessId, tag: &str) -> Result<(), Failure<'static>> {
        self.check_tag(tag, Some(id))?;
        if let Some(process) = self.get_mut(id) {
            process.identity.rename(tag);
        }
        Ok(())
    }

    /// Checks that a new process, or this one, may have a tag.
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
                let text = "the cgroup cannot be created";
                Failure::from_errno(raw_errno(errno), Stage::Cgroup, text)
            });
        }
        cgroups.acquire_limited(limits).map(Some).map_err(|errno| {
            Failure::from_errno(raw_errno(errno), Stage::Limits, "the limits cannot be set")
        })
    }

    /// Registers the pipes of a new process with epoll.
    pub(super) fn watch(&mut self, id: ProcessId, poller: &Poller) -> Result<(), Failure<'static>> {
        let Some(process) = self.get_mut(id) else {
            return Ok(());
        };
        process.watch_pipes(id, poller).map_err(|errno| {
            self.abandon(id);
            let text = "the pipes cannot be watched";
            Failure::from_errno(raw_errno(errno), Stage::Pipes, text)
        })
    }

    /// Handles an epoll event of a pipe.
    pub(crate) fn on_pipe_ready(&mut self, id: ProcessId, channel: Channel) {
        // A process that writes has executed its program.
        self.check_launch(id);
        let Some(process) = self.get_mut(id) else {
            return;
        };
        process.on_pipe_ready(channel);
        if channel == Channel::Stdin {
            self.check_terminal_full(id);
        }
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.has_backpressure() {
            self.wake(id);
        } else {
            self.read_now(id);
        }
    }

    /// Notes whether a terminal did not accept all input, after input was
    /// written to a process.
    pub(crate) fn check_terminal_full(&mut self, id: ProcessId) {
        let is_full = self
            .get_mut(id)
            .is_some_and(|process| process.terminal.is_some() && process.has_queued_input());
        if is_full && !self.full_terminals.contains(&id) {
            self.full_terminals.push(id);
        }
    }

    /// Requests an event for when full terminals accept input again.
    pub(crate) fn watch_full_terminals(&mut self, poller: &Poller) {
        for id in core::mem::take(&mut self.full_terminals) {
            if let Some(process) = self.get_mut(id)
                && let Some(input) = &process.stdin
            {
                // It is registered already, so this cannot fail.
                let _ = poller.watch_writable_once(input, Event::Pipe(id, Channel::Stdin));
            }
        }
    }

    /// Reads the outputs of a process, as far as one turn allows.
    fn read_outputs(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let mut more = false;
        for output in [&mut process.stdout, &mut process.stderr] {
            for _ in 0..READS_PER_TURN {
                output.read_pipe();
            }
            more |= output.can_read();
        }
        if more && !process.has_backpressure() {
            self.read_soon(id);
        }
    }

    /// Queues a process to be read again.
    pub(crate) fn read_soon(&mut self, id: ProcessId) {
        if !self.read_queue.contains(&id) {
            self.read_queue.push(id);
        }
    }

    /// Reads the outputs of a process that no owner slows down, and wakes its
    /// streams.
    pub(super) fn read_now(&mut self, id: ProcessId) {
        self.read_outputs(id);
        self.finalize_exit(id);
        self.wake(id);
    }

    /// Returns whether there is work to do without an event.
    pub(crate) fn is_busy(&self) -> bool {
        self.may_have_ended
            || !self.read_queue.is_empty()
            || !self.supervised.is_empty()
            || self.is_sweeping()
    }

    /// Does the queued work.
    pub(crate) fn run_queued(&mut self) {
        for id in core::mem::take(&mut self.read_queue) {
            self.read_now(id);
        }
        if self.is_sweeping() {
            self.sweep();
        }
    }

    /// Wakes all streams and the service that watch a process.
    pub(crate) fn wake(&mut self, id: ProcessId) {
        let Some(index) = self.index(id) else {
            return;
        };
        if let Some((_, process)) = self.table.get(index) {
            if process.role.is_supervised() && !self.supervised.contains(&id) {
                self.supervised.push(id);
            }
            for caller in process.callers() {
                if !self.links_to_serve.contains(&caller.link) {
                    self.links_to_serve.push(caller.link);
                }
            }
        }
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        !self.links_to_serve.is_empty()
    }

    /// Returns a process of a service that has changed.
    pub(crate) fn next_supervised(&mut self) -> Option<ProcessId> {
        self.supervised.pop()
    }

    /// Returns a link whose streams may have frames to send.
    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        self.links_to_serve.pop()
    }

    /// Returns whether [`prepare`](Self::prepare) has been called.
    pub(crate) fn is_prepared(&self) -> bool {
        self.cgroups.as_ref().is_none_or(Cgroups::is_prepared)
    }

    /// Does work in advance that a request would otherwise wait for. Called
    /// when the agent is idle.
    pub(crate) fn prepare(&mut self) {
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.prepare();
        }
    }

    /// Sets the variables that default environments have from now on.
    #[cfg(feature = "network")]
    pub(crate) fn set_common_env(&mut self, env: vmcell_wire::PackedStrings<'_>) {
        self.spawner.set_common_env(env);
    }

    /// Returns whether each process has a cgroup.
    pub(crate) fn has_cgroups(&self) -> bool {
        self.cgroups.is_some()
    }

    /// Returns the cgroup that has those of all processes in it.
    pub(crate) fn cgroup_of_all(&mut self) -> Result<Rc<OwnedFd>, Errno> {
        let cgroups = self.cgroups.as_mut().ok_or(Errno::OPNOTSUPP)?;
        cgroups.of_all()
    }

    /// Returns how many processes there are with all descendants. Each thread counts.
    pub(crate) fn count_all(&self) -> Result<u32, Errno> {
        let cgroups = self.cgroups.as_ref().ok_or(Errno::OPNOTSUPP)?;
        cgroups.count_processes()
    }

    /// Kills all processes.
    pub(crate) fn kill_all(&mut self) {
        for (_, process) in &mut self.table {
            process.kill(KillReason::Host);
        }
    }

    /// Sends SIGTERM to all processes.
    pub(crate) fn terminate_all(&self) {
        for (_, process) in &self.table {
            process.terminate();
        }
    }

    /// Sends SIGHUP to all processes on terminals.
    pub(crate) fn hang_up_all(&self) {
        for (_, process) in &self.table {
            process.hang_up();
        }
    }

    fn insert(&mut self, process: Process, poller: &Poller) -> ProcessId {
        let id = ProcessId(self.last_id.0.wrapping_add(1));
        self.last_id = id;
        let started = process.started;
        poller.add_child(process.pid);
        let index = self.table.partition_point(|(other, _)| *other < id);
        self.table.insert(index, (id, Box::new(process)));
        self.watch_launch(id, started, poller);
        id
    }

    fn index(&self, id: ProcessId) -> Option<usize> {
        self.table.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

impl Process {
    fn watch_pipes(&self, id: ProcessId, poller: &Poller) -> Result<(), Errno> {
        if let Some(input) = &self.stdin {
            let event = Event::Pipe(id, Channel::Stdin);
            match self.terminal {
                Some(_) => poller.register_terminal_input(input, event)?,
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
