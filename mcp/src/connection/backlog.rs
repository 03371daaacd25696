use std::time::Duration;

use tokio::{sync::watch, time::timeout};

/// How many bytes may wait to be sent before nothing more is received.
const MAX: usize = 16 << 20;

/// How long a client may read nothing of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much waits to be sent. A client that asks and does not read is not asked what else it
/// wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog(watch::Sender<usize>);

/// Bytes that wait to be sent, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    pub(super) fn add(&self, bytes: usize) -> Waiting {
        self.0.send_modify(|all| *all += bytes);
        Waiting {
            backlog: self.clone(),
            bytes,
        }
    }

    /// Waits until there is room for answers, and returns whether there is: a client that reads
    /// nothing will not do so any more.
    ///
    /// Cancel safe.
    pub(super) async fn has_room(&self) -> bool {
        let mut waiting = self.0.subscribe();
        while *waiting.borrow_and_update() >= MAX {
            if timeout(PATIENCE, waiting.changed()).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.backlog.0.send_modify(|all| *all -= self.bytes);
    }
}
