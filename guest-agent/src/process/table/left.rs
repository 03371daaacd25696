//! Commands that have ended and left processes behind.
//!
//! ```text
//!            forgotten                    killed
//!  table ------------------> left ----------------------> table
//!             tree lives      |   <----------------------
//!                             v    tree lives all the same
//!                            gone, when the tree is
//! ```
//!
//! They are not in the table, which is gone through whenever a process ends, and
//! do not count as processes: there can be as many as the guest may have
//! processes. Each one costs memory for what it is known by, and no descriptor.

use alloc::boxed::Box;

use vmcell_wire::Selector;

use super::Processes;
use crate::{
    cgroup::Cgroup,
    process::{Process, ProcessId},
};

/// How many of them are looked at when an orphan has ended: a look is three
/// system calls, and somebody waits.
const LOOKS: usize = 4;

/// All commands that have left processes behind, in the order of their ids.
#[derive(Default)]
pub(super) struct LeftBehind {
    list: alloc::vec::Vec<(ProcessId, Box<Process>)>,
    /// The place of the next one to look at.
    next: usize,
    /// How many looks are due.
    looks: usize,
}

impl LeftBehind {
    fn insert(&mut self, id: ProcessId, process: Box<Process>) {
        let place = self.list.partition_point(|(other, _)| *other < id);
        self.list.insert(place, (id, process));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.list.iter().map(|(id, process)| (*id, &**process))
    }

    /// So many orphans have ended: one of them may have been the last of a tree.
    pub(super) fn orphans_ended(&mut self, count: usize) {
        let looks = self.looks.saturating_add(count.saturating_mul(LOOKS));
        self.looks = looks.min(self.list.len());
    }
}

impl Processes {
    /// Keeps a process whose descendants live on.
    pub(super) fn keep_as_left(&mut self, id: ProcessId, mut process: Box<Process>) {
        process.strip();
        if let (Some(cgroup), Some(cgroups)) = (&mut process.cgroup, &mut self.cgroups) {
            cgroups.close(cgroup);
        }
        self.left.insert(id, process);
    }

    /// Finds the command that left a process behind, and takes it back into the
    /// table: the end of what it left can be waited for there.
    ///
    /// A number is never used again. Of several with the same tag it is the
    /// newest. A pid is that of any process that was left.
    pub(in crate::process) fn recall(&mut self, selector: Selector<'_>) -> Option<ProcessId> {
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
            .filter(|(id, process)| process.has_left_some() && is_wanted(*id, process))
            .last();
        if let Some((id, _)) = in_table {
            return Some(id);
        }
        let place = self
            .left
            .list
            .iter()
            .rposition(|(id, process)| is_wanted(*id, process))?;
        let (id, process) = self.left.list.remove(place);
        let place = self.table.partition_point(|(other, _)| *other < id);
        self.table.insert(place, (id, process));
        Some(id)
    }

    /// Whether there is something to look at or to remove.
    pub(super) fn is_sweeping(&self) -> bool {
        let has_more = |cgroups: &crate::cgroup::Cgroups| cgroups.has_more_to_remove();
        self.left.looks > 0 || self.cgroups.as_ref().is_some_and(has_more)
    }

    /// Forgets some of those whose descendants are gone.
    pub(super) fn sweep(&mut self) {
        for _ in 0..self.left.looks.min(LOOKS) {
            self.left.looks = self.left.looks.saturating_sub(1);
            if self.left.next >= self.left.list.len() {
                self.left.next = 0;
            }
            let place = self.left.next;
            let Some((_, process)) = self.left.list.get(place) else {
                break;
            };
            if process.tree_ended() == Some(false) {
                self.left.next = place.saturating_add(1);
                continue;
            }
            let (_, mut process) = self.left.list.remove(place);
            if let Some(cgroup) = process.cgroup.take() {
                self.take_back(cgroup);
            }
        }
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.remove_leftovers();
        }
    }
}

impl Process {
    /// Keeps what it is known by and how it ended, and nothing else.
    fn strip(&mut self) {
        self.close_pipes();
        self.terminal = None;
        self.owner = None;
        self.feeder = None;
        self.observers = alloc::vec::Vec::new();
        self.stays_for_descendants();
    }
}
