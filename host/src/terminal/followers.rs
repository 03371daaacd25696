use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Terminal, handle::Core};

/// The terminals of a VM whose output this program reads, by id.
#[derive(Default)]
pub(crate) struct Followers(Mutex<Vec<(u32, Weak<Core>)>>);

impl Followers {
    pub(super) fn get(&self, id: u32) -> Option<Terminal> {
        find(&self.lock(), id)
    }

    /// Adds a terminal and returns it. Returns the existing one if there is one
    /// with this id.
    pub(super) fn add(&self, id: u32, terminal: Terminal) -> Terminal {
        let mut known = self.lock();
        known.retain(|(_, core)| core.strong_count() > 0);
        if let Some(earlier) = find(&known, id) {
            return earlier;
        }
        known.push((id, Arc::downgrade(terminal.core())));
        terminal
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, Weak<Core>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(known: &[(u32, Weak<Core>)], id: u32) -> Option<Terminal> {
    let (_, core) = known.iter().find(|(other, _)| *other == id)?;
    core.upgrade().map(Terminal::from_core)
}
