//! Processes that have ended while descendants are still running.
//!
//! ```text
//!            removed                       killed
//!  table ------------------> lingering ------------------> table
//!         tree still runs      |      <-----------------
//!                              v         tree still runs
//!                        dropped when the tree has ended
//! ```
//!
//! They are not in the table, which is iterated whenever a process ends, and do
//! not count as processes: there can be as many as the guest may have
//! processes. Each costs memory for its identity, and no descriptor.

use alloc::boxed::Box;

use vmcell_wire::Selector;

use super::Processes;
use crate::{cgroup::Cgroup, ids::ProcessId, process::Process};

/// How many of them are checked for each ended orphan: a check is three system
/// calls and delays other work.
const CHECKS_PER_ORPHAN: usize = 4;

/// All such processes, sorted by id.
#[derive(Default)]
pub(super) struct Lingering {
    list: alloc::vec::Vec<(ProcessId, Box<Process>)>,
    /// The index of the next one to check.
    next: usize,
    /// How many checks are due.
    checks: usize,
}

impl Lingering {
    fn insert(&mut self, id: ProcessId, process: Box<Process>) {
        let index = self.list.partition_point(|(other, _)| *other < id);
        self.list.insert(index, (id, process));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.list.iter().map(|(id, process)| (*id, &**process))
    }

    /// Schedules checks after orphans have ended: one of them may have been the
    /// last of a tree.
    pub(super) fn orphans_ended(&mut self, count: usize) {
        let more = count.saturating_mul(CHECKS_PER_ORPHAN);
        let checks = self.checks.saturating_add(more);
        self.checks = checks.min(self.list.len());
    }
}

impl Processes {
    /// Tracks a process whose descendants are still running.
    pub(super) fn keep_lingering(&mut self, id: ProcessId, mut process: Box<Process>) {
        process.strip();
        if let (Some(cgroup), Some(cgroups)) = (&mut process.cgroup, &mut self.cgroups) {
            cgroups.close(cgroup);
        }
        self.lingering.insert(id, process);
    }

    /// Finds an ended process by a selector, and moves it back into the table,
    /// where a stream can wait for the end of its descendants.
    ///
    /// Ids are never reused. Of several with the same tag it is the newest. A
    /// pid is that of any descendant.
    pub(in crate::process) fn restore(&mut self, selector: Selector<'_>) -> Option<ProcessId> {
        let number = match selector {
            Selector::Pid(pid) => Some(Cgroup::number_of(pid)?),
            _ => None,
        };
        let is_wanted = |id: ProcessId, process: &Process| match selector {
            Selector::Id(wanted) => id.0 == wanted,
            Selector::Tag(tag) => process.identity.tag() == tag,
            Selector::Pid(_) => process.cgroup.as_ref().map(Cgroup::number) == number,
        };
        let in_table = self
            .iter()
            .filter(|(id, process)| process.is_lingering() && is_wanted(*id, process))
            .last();
        if let Some((id, _)) = in_table {
            return Some(id);
        }
        let index = self
            .lingering
            .list
            .iter()
            .rposition(|(id, process)| is_wanted(*id, process))?;
        let (id, process) = self.lingering.list.remove(index);
        let index = self.table.partition_point(|(other, _)| *other < id);
        self.table.insert(index, (id, process));
        Some(id)
    }

    /// Returns whether checks or cleanup are due.
    pub(super) fn is_sweeping(&self) -> bool {
        let has_more = |cgroups: &crate::cgroup::Cgroups| cgroups.has_more_to_remove();
        self.lingering.checks > 0 || self.cgroups.as_ref().is_some_and(has_more)
    }

    /// Makes some of the due checks: drops those whose descendants have ended.
    pub(super) fn sweep(&mut self) {
        for _ in 0..self.lingering.checks.min(CHECKS_PER_ORPHAN) {
            self.lingering.checks = self.lingering.checks.saturating_sub(1);
            if self.lingering.next >= self.lingering.list.len() {
                self.lingering.next = 0;
            }
            let index = self.lingering.next;
            let Some((_, process)) = self.lingering.list.get(index) else {
                break;
            };
            if process.tree_ended() == Some(false) {
                self.lingering.next = index.saturating_add(1);
                continue;
            }
            let (_, mut process) = self.lingering.list.remove(index);
            if let Some(cgroup) = process.cgroup.take() {
                self.return_cgroup(cgroup);
            }
        }
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.remove_leftovers();
        }
    }
}

impl Process {
    /// Drops everything but its identity and its exit status.
    fn strip(&mut self) {
        self.close_pipes();
        self.terminal = None;
        self.owner = None;
        self.stdin_writer = None;
        self.observers = alloc::vec::Vec::new();
        self.keep_for_descendants();
    }
}
