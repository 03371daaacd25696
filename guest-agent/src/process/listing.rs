use alloc::vec::Vec;

use vmcell_wire::{
    Event, Outcome, PackedStringsBuf, ProcessTree, StreamId,
    limits::{MAX_DESCENDANTS, MAX_LISTED},
};

use super::Process;
use crate::{
    agent::Agent,
    cgroup::{Cgroup, Members},
    clock::Moment,
    link::{LinkError, LinkSession},
};

/// The maximum number of processes examined for one answer. Those that have
/// ended with all descendants are skipped.
const MAX_EXAMINED: usize = 1024;

impl Agent {
    /// Lists processes with the descendants that outlived them.
    pub(crate) fn list_trees(
        &self,
        session: &mut LinkSession,
        stream: StreamId,
        after: u32,
    ) -> Result<(), LinkError> {
        let now = Moment::now();
        let known = self.tasks.processes.visible_or_lingering();
        let mut processes = known.filter(|(id, _)| id.0 > after);
        let mut listed = 0usize;
        let mut examined = 0usize;
        while listed < MAX_LISTED
            && let Some((id, process)) = processes.next()
        {
            examined = examined.saturating_add(1);
            let is_over = !process.is_visible() && process.tree_ended() == Some(true);
            if is_over && examined < MAX_EXAMINED {
                continue;
            }
            let left = process.remaining_members();
            listed = listed.saturating_add(1);
            let mut pids = Vec::with_capacity(MAX_DESCENDANTS.saturating_mul(size_of::<u32>()));
            let mut names = PackedStringsBuf::new();
            for member in &left.list {
                // The kernel's names of processes have no zero bytes.
                if names.push(&member.name) {
                    pids.extend_from_slice(&member.pid.to_le_bytes());
                }
            }
            let tree = ProcessTree {
                entry: process.entry(id, now),
                pids: &pids,
                names: names.as_packed(),
                more: left.more,
            };
            session.deferred_event(stream, &Event::ListedTree(tree))?;
            if examined >= MAX_EXAMINED {
                break;
            }
        }
        let more = processes.next().is_some();
        session.close(stream, &Outcome::EndOfList { more })
    }
}

impl Process {
    /// Returns its remaining descendants, if it has ended.
    fn remaining_members(&self) -> Members {
        match &self.cgroup {
            Some(cgroup) if self.has_ended() => Cgroup::members(cgroup),
            _ => Members::default(),
        }
    }
}
