use alloc::collections::BTreeSet;

use crate::{clock::Moment, ids::ProcessId};

/// When the agent must check processes again, and for what.
#[derive(Default)]
pub(crate) struct Deadlines(BTreeSet<(Moment, ProcessId, DeadlineKind)>);

/// What is checked at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeadlineKind {
    /// Whether the child has executed its program.
    Launch,
    /// Whether descendants still run, or hold output pipes open, after the process
    /// has ended.
    TreeGrace,
    /// Whether the process still runs after its timeout.
    Timeout,
    /// Whether a host has resumed the process.
    Resume,
}

impl Deadlines {
    pub(crate) fn add(&mut self, at: Moment, process: ProcessId, kind: DeadlineKind) {
        self.0.insert((at, process, kind));
    }

    /// Removes all deadlines of a process.
    pub(crate) fn remove_all(&mut self, process: ProcessId) {
        self.0.retain(|(_, other, _)| *other != process);
    }

    /// Removes all deadlines of an ended process but that for resuming it.
    pub(crate) fn keep_only_resume(&mut self, process: ProcessId) {
        self.0
            .retain(|(_, other, kind)| *other != process || *kind == DeadlineKind::Resume);
    }

    pub(crate) fn remove(&mut self, process: ProcessId, kind: DeadlineKind) {
        self.0
            .retain(|(_, other, other_kind)| (*other, *other_kind) != (process, kind));
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(at, _, _)| *at)
    }

    /// Takes the next deadline that has passed. Its process may have ended since.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<(ProcessId, DeadlineKind)> {
        let (at, process, kind) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some((process, kind))
    }
}
