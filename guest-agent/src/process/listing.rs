use alloc::vec::Vec;

use vmcell_wire::{
    Event, Outcome, PackedBuf, StreamId, Tree, encode,
    limits::{MAX_LEFT, MAX_LISTED},
};

use super::Process;
use crate::{
    agent::Agent,
    cgroup::{Cgroup, Members},
    clock::Moment,
    link::{Conversation, Lost},
};

/// So many commands are looked at for one answer: some may have nothing left
/// any more, and are passed over.
const MAX_EXAMINED: usize = 1024;

impl Agent {
    /// Lists processes with what they left behind when they ended.
    pub(crate) fn list_trees(
        &self,
        conversation: &mut Conversation,
        stream: StreamId,
        after: u32,
    ) -> Result<(), Lost> {
        let now = Moment::now();
        let known = self.tasks.processes.known_or_left();
        let mut processes = known.filter(|(id, _)| id.0 > after);
        let mut listed = 0usize;
        let mut examined = 0usize;
        while listed < MAX_LISTED
            && let Some((id, process)) = processes.next()
        {
            examined = examined.saturating_add(1);
            let is_over = !process.is_known() && process.tree_ended() == Some(true);
            if is_over && examined < MAX_EXAMINED {
                continue;
            }
            let left = process.left_behind();
            listed = listed.saturating_add(1);
            let mut pids = Vec::with_capacity(MAX_LEFT.saturating_mul(size_of::<u32>()));
            let mut names = PackedBuf::new();
            for member in &left.list {
                // The kernel's names have no zero bytes.
                if names.push(&member.name) {
                    pids.extend_from_slice(&member.pid.to_le_bytes());
                }
            }
            let tree = Tree {
                entry: process.entry(id, now),
                pids: &pids,
                names: names.as_packed(),
                more: left.more,
            };
            encode::event(conversation.unhurried(), stream, &Event::ListedTree(tree))?;
            if examined >= MAX_EXAMINED {
                break;
            }
        }
        let more = processes.next().is_some();
        conversation.close(stream, &Outcome::EndOfList { more })
    }
}

impl Process {
    /// Its descendants, if it has ended without them.
    fn left_behind(&self) -> Members {
        match &self.cgroup {
            Some(cgroup) if self.has_ended() => Cgroup::members(cgroup),
            _ => Members::default(),
        }
    }
}
