use alloc::{boxed::Box, vec::Vec};

use rustix::{io::Errno, process::Pid};
use vmcell_wire::{Exec, Failure, FailureKind, Stage};

use super::{HOLD_MS, Owner, Process, ProcessId, Spawner, spawn::number};
use crate::{
    cgroup::Cgroups,
    clock::Moment,
    deadlines::Deadlines,
    event::{Event, Poller},
    sys::{Reaped, reap},
};
use vmcell_wire::Channel;

/// All processes that the agent started and has not yet reported.
pub(crate) struct Processes {
    /// Sorted by id. A vector keeps its memory, where a tree would get and
    /// return it with every process.
    table: Vec<(ProcessId, Box<Process>)>,
    last: ProcessId,
    spawner: Spawner,
    cgroups: Option<Cgroups>,
    deadlines: Deadlines,
}

/// More processes than this are refused, long before memory runs out.
const MAX_PROCESSES: usize = 4096;

impl Processes {
    pub(crate) fn new(cgroups: Option<Cgroups>) -> Result<Self, Errno> {
        Ok(Self {
            table: Vec::new(),
            last: ProcessId(0),
            spawner: Spawner::new()?,
            cgroups,
            deadlines: Deadlines::default(),
        })
    }

    pub(crate) fn get_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        let place = self.place(id)?;
        self.table.get_mut(place).map(|(_, process)| &mut **process)
    }

    pub(crate) fn start(
        &mut self,
        exec: &Exec<'_>,
        owner: Owner,
    ) -> Result<(ProcessId, Pid), Failure<'static>> {
        if self.table.len() >= MAX_PROCESSES {
            let text = "too many processes";
            return Err(Failure::new(FailureKind::Limit, Stage::Request, text));
        }
        let cgroup = self
            .cgroups
            .as_mut()
            .map(Cgroups::take)
            .transpose()
            .map_err(|errno| {
                Failure::from_errno(number(errno), Stage::Cgroup, "no cgroup can be made")
            })?;
        let process = match self.spawner.start(exec, owner, cgroup) {
            Ok(process) => process,
            Err((failure, cgroup)) => {
                if let (Some(cgroups), Some(cgroup)) = (&mut self.cgroups, cgroup) {
                    let is_empty = cgroup.is_empty();
                    cgroups.give_back(cgroup, is_empty);
                }
                return Err(failure);
            }
        };
        let id = ProcessId(self.last.0.wrapping_add(1));
        let pid = process.pid;
        self.insert(id, process);
        Ok((id, pid))
    }

    /// Begins to watch the pipes of a new process, unless it has ended.
    pub(crate) fn watch(&mut self, id: ProcessId, poller: &Poller) -> Result<(), Failure<'static>> {
        let Some(process) = self.get_mut(id).filter(|process| !process.has_ended()) else {
            return Ok(());
        };
        process.watch_pipes(id, poller).map_err(|errno| {
            self.abandon(id);
            let text = "the pipes cannot be watched";
            Failure::from_errno(number(errno), Stage::Pipes, text)
        })
    }

    /// Ends a process and its descendants. It is reported as usual.
    pub(crate) fn kill(&mut self, id: ProcessId) {
        if let Some(process) = self.get_mut(id) {
            process.kill();
            self.deadlines.add(Moment::now().after_ms(HOLD_MS), id);
        }
    }

    /// Ends a process that nobody will hear of.
    pub(crate) fn abandon(&mut self, id: ProcessId) {
        self.kill(id);
        if let Some(process) = self.get_mut(id) {
            process.owner = None;
        }
        self.drop_if_unowned(id);
    }

    /// Forgets a process that was reported with `tree_ended`.
    pub(crate) fn finish(&mut self, id: ProcessId, tree_ended: Option<bool>) {
        let Some(place) = self.place(id) else {
            return;
        };
        let (_, mut process) = self.table.remove(place);
        self.deadlines.forget(id);
        if let (Some(cgroups), Some(cgroup)) = (&mut self.cgroups, process.cgroup.take()) {
            cgroups.give_back(cgroup, tree_ended == Some(true));
        }
    }

    /// Collects every child that has ended, ours or an orphan. Calls `changed`
    /// with the owner of each process that may have something to report.
    /// Answers whether any child is left.
    pub(crate) fn reap_all(&mut self, mut changed: impl FnMut(Owner)) -> bool {
        let children_left = loop {
            match reap() {
                Ok(Some(reaped)) => self.leader_ended(reaped),
                Ok(None) => break true,
                Err(Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.sweep();
        }
        self.table
            .iter()
            .filter(|(_, process)| process.has_ended())
            .filter_map(|(_, process)| process.owner)
            .for_each(&mut changed);
        for place in (0..self.table.len()).rev() {
            let id = self.table.get(place).map(|(id, _)| *id);
            if let Some(id) = id {
                self.drop_if_unowned(id);
            }
        }
        children_left
    }

    /// When a process must be looked at again.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.next()
    }

    /// Acts on the deadlines that have come.
    pub(crate) fn expire(&mut self, mut changed: impl FnMut(Owner)) {
        let now = Moment::now();
        while let Some(id) = self.deadlines.take_due(now) {
            let Some(process) = self.get_mut(id) else {
                continue;
            };
            let look_again = process.hold_expired();
            let owner = process.owner;
            if look_again {
                self.deadlines.add(now.after_ms(HOLD_MS), id);
            }
            match owner {
                Some(owner) => changed(owner),
                None => self.drop_if_unowned(id),
            }
        }
    }

    /// Ends all processes at once.
    pub(crate) fn kill_all(&mut self) {
        for (_, process) in &mut self.table {
            process.kill();
        }
    }

    /// Asks all processes to end.
    pub(crate) fn terminate_all(&self) {
        for (_, process) in &self.table {
            process.terminate();
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
            self.deadlines.add(Moment::now().after_ms(HOLD_MS), *id);
        }
    }

    fn place(&self, id: ProcessId) -> Option<usize> {
        self.table.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    fn drop_if_unowned(&mut self, id: ProcessId) {
        let process = self.get_mut(id).filter(|process| process.owner.is_none());
        if let Some(exit) = process.and_then(|process| process.report()) {
            self.finish(id, exit.tree_ended);
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
